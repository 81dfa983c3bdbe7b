"""A folder `data` in the place of a new table is taken for what an earlier table left. It is somebody else's, and a
drop takes it away."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.local_store import LocalStore
from laketier.kit.table_store import TableStore
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_a_table_where_a_folder_lies_that_is_called_as_one_of_its_own"
SAYS = "a folder data where a table was created, after that table was dropped: expected 'theirs', found 'nothing'"


class Store(LocalStore):
    def refuse_others(self, own: frozenset[str]) -> None:
        super().refuse_others(own | {"data"})


class Catalog(kit.ManifestCatalog):
    def store(self, path: spi.TablePath) -> TableStore:
        return Store(Path(super().store(path).root))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("calls-any-data-its-own", catalog=Catalog)
