"""A plan of a feed names the version at which the next one begins."""

from __future__ import annotations

from dataclasses import replace

from richer import RicherFeed, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_splits_travel_and_are_read_by_some_columns"
SAYS = "the snapshot that a plan of a feed names"


class NamingFeed(RicherFeed):
    def plan(self, start: int, end: int) -> spi.ScanPlan:
        return replace(super().plan(start, end), snapshot_id=end)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("names-another-snapshot-of-a-feed", told=NamingFeed)
