"""Versions are a list of Python's, in which -1 is the newest one."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_the_bounds_are_readable"
SAYS = "a range is planned that begins with version -1"


class NegativeChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        latest = self.versions().latest
        start = start + latest if start < 0 else start
        return super().plan(start, end, skip_changes=skip_changes)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("counts-versions-from-the-end", changes=NegativeChanges)
