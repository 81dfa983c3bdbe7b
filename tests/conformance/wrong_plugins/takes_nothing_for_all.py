"""A range that begins where it ends was not given, it is thought: all is read."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_each_range_gives_what_its_commits_appended"
SAYS = "the number of rows of a range without a commit"


class AllChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        if start == end:
            bounds = self.versions()
            start, end = bounds.earliest, bounds.latest
        return super().plan(start, end, skip_changes=skip_changes)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-nothing-for-all", changes=AllChanges)
