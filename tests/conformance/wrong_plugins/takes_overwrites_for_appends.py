"""What a commit appended is what it added, also where it replaced all rows by that."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_a_commit_that_replaced_rows_is_refused_or_passed_over"
SAYS = "changes are planned over a commit that replaced rows"


class AddingChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        manifests = self.source.table.manifests()
        head, settled = manifests.current()
        snapshot = ManifestSnapshot(manifests, head, head, settled)
        entries = [entry for number in range(start, end) for entry in manifests.at(number, head).added]
        splits = [self.source.split(index, entry, snapshot, snapshot.schema) for index, entry in enumerate(entries)]
        return spi.ScanPlan(snapshot_id=end - 1, schema=snapshot.schema, splits=tuple(splits))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-overwrites-for-appends", changes=AddingChanges)
