"""Tasks stage their files in one folder of the warehouse, whichever table they are of. What is there and no table's own
is an orphan of each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlite_lake.plugin import Maintenance, SqlitePlugin, Storage

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_neighbours.py::test_orphans_of_a_table_are_no_other_tables"
SAYS = "orphans of db.one that a task of db.two staged"


@dataclass(frozen=True)
class AllMaintenance(spi.LakeMaintenance):
    folders: tuple[Path, ...]

    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        each = [Maintenance(kit.TableFolder.at(str(folder))) for folder in self.folders]
        return [orphan for one in each for orphan in one.orphans(modified_before)]

    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        return [orphan for folder in self.folders for orphan in self._removed(folder, orphans)]

    def _removed(self, folder: Path, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        there = [orphan for orphan in orphans if (folder / orphan.path).exists()]
        return Maintenance(kit.TableFolder.at(str(folder))).remove_orphans(there)


class AllStorage(Storage):
    def maintenance(self, table: spi.TableInfo) -> spi.LakeMaintenance:  # type: ignore[override]
        return AllMaintenance(tuple(sorted(Path(table.location).parent.iterdir())))


class AllPlugin(SqlitePlugin):
    identifier = "stages-for-all-tables"

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        return AllStorage(super().create_storage(config).warehouse)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return AllPlugin()
