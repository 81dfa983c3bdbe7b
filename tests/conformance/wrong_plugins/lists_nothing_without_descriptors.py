"""A process that has too many files open lists no tables."""

from __future__ import annotations

import errno

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[tables]"
SAYS = "EMFILE from a look"


class ExhaustedCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        try:
            return super().list_tables(database)
        except (OSError, spi.StorageError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if isinstance(cause, OSError) and cause.errno == errno.EMFILE:
                return []
            raise


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-nothing-without-descriptors", catalog=ExhaustedCatalog)
