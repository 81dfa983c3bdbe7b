"""The snapshots are a Python list, in which -1 is the newest one."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_an_unknown_snapshot_is_refused"
SAYS = "snapshot -1 is planned, which is not there: expected SnapshotNotFound, and no error was raised"


class ListingSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        number = request.snapshot_id
        if number is not None:
            head, _ = self.table.manifests().current()
            snapshots = list(range(head.number + 1))
            number = snapshots[number] if -len(snapshots) <= number < len(snapshots) else number
        return super().plan(replace(request, snapshot_id=number))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("counts-from-the-end", source=ListingSource)
