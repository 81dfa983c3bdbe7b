"""A change of columns goes onto the newest commit, with the watermarks that were there when it was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.kit.manifests import Manifest
from laketier.kit.manifests.log import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_meanwhile.py::test_a_round_comes_meanwhile[alter]"
SAYS = "the epoch of the other pipeline's watermark"
SEEN: dict[str, Mapping[str, str]] = {}


class StaleLog(ManifestLog):
    def append(self, manifest: Manifest) -> Manifest:
        if manifest.kind == "alter":
            manifest = replace(manifest, watermarks=SEEN[self.table_uuid])
        return super().append(manifest)


class StaleTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return StaleLog.open(self.location, self.layout)


class StaleCatalog(kit.ManifestCatalog):
    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        head = self.table_type(self.location(path)).open().head
        SEEN[head.table_uuid] = head.watermarks
        return super().alter_table(path, changes)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-the-watermarks-that-it-saw-first", table=StaleTable, catalog=StaleCatalog)
