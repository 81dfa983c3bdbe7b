"""A range gives what its newest commit appended first, as a log is often read. Who follows the table by a key keeps the
last row of each, which is an old one."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_each_range_gives_what_its_commits_appended"
SAYS = "the commits that rows of a range are of, in their order"


class NewestFirst(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        plan = super().plan(start, end, skip_changes=skip_changes)
        splits = tuple(replace(split, index=index) for index, split in enumerate(plan.splits[::-1]))
        return replace(plan, splits=splits)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("gives-the-newest-commit-first", changes=NewestFirst)
