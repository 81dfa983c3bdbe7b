"""A range that ends with version 0 has no end, as Python has it: it is read to the newest one."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_the_bounds_are_readable"
SAYS = "the number of rows from version 0 to itself: expected 0, found 10"


class EndlessChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        return super().plan(start, end or self.versions().latest, skip_changes=skip_changes)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("follows-all-where-nothing-is-asked", changes=EndlessChanges)
