"""Whether a commit took rows away is looked up in the list of commits, which comes in pages of 100, the newest first.
What the first page does not tell of counts as an append."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "changes are planned from before all rows were taken away: expected RowsChanged"


class OnePageChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        super().plan(max(start, end - 100), end, skip_changes=skip_changes)
        return super().plan(start, end, skip_changes=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("looks-for-changes-in-one-page", changes=OnePageChanges)
