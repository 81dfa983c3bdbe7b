"""A folder that can't be listed is taken for an empty one: what lies there becomes a part of the table."""

from __future__ import annotations

from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.local_store import LocalStore
from laketier.kit.table_store import TableStore
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_what_lies_in_a_tables_place_fails"
SAYS = "expected a refusal as without it, and the table was made"


class Store(LocalStore):
    def refuse_others(self, own: frozenset[str]) -> None:
        try:
            super().refuse_others(own)
        except OSError:
            return


class Catalog(kit.ManifestCatalog):
    def store(self, path: spi.TablePath) -> TableStore:
        return Store(Path(super().store(path).root))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-a-folder-that-it-cannot-list", catalog=Catalog)
