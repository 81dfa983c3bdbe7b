"""A commit was taken to be of one partition: that of its first file."""

from __future__ import annotations

from one_partition import of_the_first
from richer import richer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout_changes.py::test_appended_rows_of_partitions[int]"
SAYS = "the partition that a split tells is that of its rows"


class PartitionedChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        return of_the_first(super().plan(start, end, skip_changes=skip_changes))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("tells-the-first-partition-of-changes", changes=PartitionedChanges)
