"""What a version did was taken to be of one partition: that of its first file."""

from __future__ import annotations

from one_partition import of_the_first
from richer import RicherFeed, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout_changes.py::test_a_feed_of_partitions[string]"
SAYS = "the partition that a split tells is that of its rows"


class PartitionedFeed(RicherFeed):
    def plan(self, start: int, end: int) -> spi.ScanPlan:
        return of_the_first(super().plan(start, end))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("feeds-the-first-partition", told=PartitionedFeed)
