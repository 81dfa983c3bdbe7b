"""What a version did was taken to be of one partition: that of its first file."""

from __future__ import annotations

from dataclasses import replace

from richer import RicherFeed, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout_changes.py::test_a_feed_of_partitions[string]"
SAYS = "the partition that a split tells is that of its rows"


class PartitionedFeed(RicherFeed):
    def plan(self, start: int, end: int) -> spi.ScanPlan:
        plan = super().plan(start, end)
        first = plan.splits[0].partition if plan.splits else ()
        return replace(plan, splits=tuple(replace(split, partition=first) for split in plan.splits))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("feeds-the-first-partition", told=PartitionedFeed)
