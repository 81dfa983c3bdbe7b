"""A range that ends behind the newest version ends there: more will come later."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_the_bounds_are_readable"
SAYS = "a range to 1 versions beyond the latest is planned, from -1 beyond"


class ClampingChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        return super().plan(start, min(end, self.versions().latest), skip_changes=skip_changes)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("clamps-ranges-to-come", changes=ClampingChanges)
