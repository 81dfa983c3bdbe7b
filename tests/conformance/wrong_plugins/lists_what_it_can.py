"""A folder that can't be listed holds no tables."""

from __future__ import annotations

import os

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[tables]"
SAYS = "gets no error: expected ['db.t', 'db.t_beside'], found []"


class LenientCatalog(kit.ManifestCatalog):
    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        try:
            os.listdir(self.warehouse)
        except OSError:
            return []
        return super().list_tables(database)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-what-it-can", catalog=LenientCatalog)
