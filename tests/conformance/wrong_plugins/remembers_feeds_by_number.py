"""A commit never changes, so a process plans what it did once: by the place of its table, and its number."""

from __future__ import annotations

from richer import RicherFeed, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_a_table_that_was_made_anew_has_its_own_feed"
SAYS = "expected no error, found CorruptTable("

_PLANNED: dict[tuple[str, int, int], spi.ScanPlan] = {}


class RememberingFeed(RicherFeed):
    def plan(self, start: int, end: int) -> spi.ScanPlan:
        key = str(self.source.table.location), start, end
        if key not in _PLANNED:
            _PLANNED[key] = super().plan(start, end)
        return _PLANNED[key]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("remembers-feeds-by-number", told=RememberingFeed)
