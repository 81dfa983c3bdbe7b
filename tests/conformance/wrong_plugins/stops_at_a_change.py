"""A commit that changed rows is passed over, and with it what comes behind."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_a_commit_that_replaced_rows_is_refused_or_passed_over"
SAYS = "rows that were appended around a commit that replaced rows, which is passed over"


class StoppingChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        if not skip_changes:
            return super().plan(start, end)
        for stop in range(start, end):
            try:
                super().plan(stop, stop + 1)
            except spi.RowsChanged:
                return replace(super().plan(start, stop), snapshot_id=end - 1)
        return super().plan(start, end)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("stops-at-a-change", changes=StoppingChanges)
