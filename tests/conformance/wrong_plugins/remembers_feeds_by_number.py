"""A commit never changes, so a process reads what it did once: by the place of its table, and its number."""

from __future__ import annotations

from remembering import RememberingSource, of_commits
from richer import RicherFeed, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_a_table_that_was_made_anew_has_its_own_feed"
SAYS = "rows that the feed of table 1 of this name tells: expected"


class NumberedFeed(RicherFeed):
    def plan(self, start: int, end: int) -> spi.ScanPlan:
        return of_commits(self.source.table.location, start, end, super().plan(start, end))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("remembers-feeds-by-number", told=NumberedFeed, source=RememberingSource)
