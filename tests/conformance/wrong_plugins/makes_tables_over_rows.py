"""A new table may have what killed tasks left in its folder, told by the names of files. All rows have such names."""

from __future__ import annotations

from dataclasses import dataclass

from crooked import CrookedPlugin
from feather_lake.plugin import NAMES

from laketier import kit, spi
from laketier.kit.local_store import LocalStore, folder_of
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_what_leads_to_the_rows_is_lost"
SAYS = (
    "is lost, and the files of the rows are there, and a table of this name is made and dropped: files of the rows that"
)


@dataclass(frozen=True)
class TolerantStore(LocalStore):
    def refuse_others(self, own: frozenset[str]) -> None:
        super().refuse_others(own.union(name for name in self.names("") if NAMES.attempt_of(name) is not None))


class TolerantCatalog(kit.ManifestCatalog):
    def store(self, path: spi.TablePath) -> TolerantStore:
        return TolerantStore(folder_of(super().store(path)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("makes-tables-over-rows", catalog=TolerantCatalog)
