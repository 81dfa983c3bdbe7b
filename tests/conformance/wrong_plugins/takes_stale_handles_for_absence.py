"""A server of files says that a handle is stale, and the table is taken for one that is gone."""

from __future__ import annotations

import errno

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.manifests import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[rows]"
SAYS = "ESTALE from a look"


class StaleTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        try:
            return super().manifests()
        except (OSError, spi.StorageError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if isinstance(cause, OSError) and cause.errno == errno.ESTALE:
                raise spi.TableNotFound("the table is gone", where=str(self.location)) from error
            raise


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-stale-handles-for-absence", table=StaleTable)
