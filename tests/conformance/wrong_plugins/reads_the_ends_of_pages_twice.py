"""A range of versions is read in pages of 100, and each page begins with the version that the one before ended with."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "the changes from their beginning"


class PagedChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        whole = super().plan(start, end, skip_changes=skip_changes)
        pages = [(max(start, first - 1), min(first + 100, end)) for first in range(start, end, 100)]
        plans = [super(PagedChanges, self).plan(*page, skip_changes=skip_changes) for page in pages]
        splits = [split for plan in plans for split in plan.splits]
        return replace(whole, splits=tuple(replace(split, index=index) for index, split in enumerate(splits)))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-the-ends-of-pages-twice", changes=PagedChanges)
