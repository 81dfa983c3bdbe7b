"""A table is a folder below the warehouse: database and name, with an underscore between."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.table_store import TableStore
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_names_that_are_alike_when_joined_stay_apart"
SAYS = "names that are alike when joined"


class JoiningCatalog(kit.ManifestCatalog):
    def store(self, path: spi.TablePath) -> TableStore:
        database, _, table = f"{path.database}_{path.table}".rpartition("_")
        return super().store(spi.TablePath(database or "x", table or "x"))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("joins-names-of-tables", catalog=JoiningCatalog)
