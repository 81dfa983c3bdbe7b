"""A file in the table's folder is an orphan unless the manifests of a table of this identity name it. After a drop
there are none, and the folder is that of the next table of this name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage
from feather_lake.plugin import NAMES

from laketier import kit, spi
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_a_table_that_was_made_anew"
SAYS = "rows of the table that was made anew, after orphans were collected by who knew the dropped one"


@dataclass(frozen=True)
class IdentifyingMaintenance(kit.ManifestMaintenance):
    identity: str = ""

    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        table = self.table
        found = kit.LocalFolder(table.location).files()
        staged = [
            spi.OrphanFile(file.path, file.bytes, file.modified_at, "data", NAMES.attempt_of(file.path))
            for file in found
            if NAMES.attempt_of(file.path) and file.modified_at < modified_before
        ]
        manifests = ManifestLog(table.location, table.layout, self.identity, table.manifests().manifests_per_rollup)
        published = table.published(manifests, manifests.head()[0]) if manifests.folder.exists() else set()
        return [file for file in staged if file.path not in published]


class IdentifyingStorage(CrookedStorage):
    def maintenance(self, table: spi.TableInfo) -> spi.LakeMaintenance:
        return IdentifyingMaintenance(self.parts.at(table), table.table_uuid)


class IdentifyingPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return IdentifyingStorage(Path(config.warehouse), self._parts)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return IdentifyingPlugin("collects-by-identity")
