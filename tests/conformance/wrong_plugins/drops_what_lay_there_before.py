"""A table is made in whatever folder has its name, and a drop takes that folder away with all that lies in it."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.local_store import LocalStore
from laketier.kit.table_store import TableStore
from laketier.registry import hookimpl

CAUGHT_BY = "test_places.py::test_a_table_where_something_else_lies[a folder]"
SAYS = "a folder where a table was created, after that table was dropped: expected 'theirs', found 'nothing'"


class Store(LocalStore):
    def refuse_others(self, own: frozenset[str]) -> None:
        pass


class Catalog(kit.ManifestCatalog):
    def store(self, path: spi.TablePath) -> TableStore:
        return Store(Path(super().store(path).root))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("drops-what-lay-there-before", catalog=Catalog)
