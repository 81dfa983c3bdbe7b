"""Where a folder is not there that the commit of a new column needs, it is made: also that of a table which somebody
dropped meanwhile, of which one manifest is there then."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import spi
from laketier.kit.durable import make_directories
from laketier.kit.manifests import Manifest, ManifestLog
from laketier.kit.manifests.table_file import TableFile
from laketier.registry import hookimpl

CAUGHT_BY = "test_dropped.py::test_a_drop_at_each_step_of_a_change"
SAYS = "the table is loaded afterwards: expected TableNotFound, "


class ObligingLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        try:
            return super().append(manifest)
        except spi.Conflict:
            if manifest.kind != "alter" or self.store.exists(self.home):
                raise
        make_directories(self.folder)
        table = TableFile(self.layout.format, self.table_uuid, self.manifests_per_rollup)
        self.store.replace(self.layout.table_file, table.encode())
        return super().append(manifest)


class ObligingTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return ObligingLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("alters-dropped-tables-back", table=ObligingTable)
