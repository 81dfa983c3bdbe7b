"""Its collector asks the commits that are left which files are live. Another tool ended older ones, whose files the
table still has."""

from __future__ import annotations

from typing import ClassVar

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit, spi
from laketier.kit.manifests import Manifest, ManifestLog
from laketier.kit.manifests.chain import back_from
from laketier.kit.scans import check_versions
from laketier.registry import hookimpl

CAUGHT_BY = "test_foreign_maintenance.py::test_an_expired_range_is_refused"
SAYS = "rows after old versions expired and then orphans were collected"


class Harness:
    forgotten: ClassVar[dict[str, int]] = {}
    """By table: the first version that is left."""

    def expire(self, storage: spi.LakeStorage, table: spi.TableInfo) -> None:
        self.forgotten[table.location] = storage.changes(table).versions().latest - 1


class ExpiringTable(FeatherTable):
    def published(self, manifests: ManifestLog, head: Manifest) -> set[str]:
        left = back_from(manifests, head, down_to=Harness.forgotten.get(str(self.location), 0))
        return {entry.path for manifest in left for entry in manifest.added}


class ExpiringChanges(kit.ManifestChanges):
    def versions(self) -> spi.VersionBounds:
        earliest = Harness.forgotten.get(str(self.source.table.location), 0)
        return spi.VersionBounds(earliest=earliest, latest=super().versions().latest)

    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        check_versions(start, end, self.versions(), where=str(self.source.table.location))
        return super().plan(start, end, skip_changes=skip_changes)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("collects-what-expired-commits-added", table=ExpiringTable, changes=ExpiringChanges)
