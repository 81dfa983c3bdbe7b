"""A commit never changes, so a process reads what it appended once: by the place of its table, and its number."""

from __future__ import annotations

from remembering import RememberingSource, of_commits
from richer import richer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_a_table_that_was_made_anew_has_its_own_changes"
SAYS = "rows that table 1 of this name appended: expected"


class NumberedChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        plan = super().plan(start, end, skip_changes=skip_changes)
        return of_commits(self.source.table.location, start, end, plan)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("remembers-changes-by-number", source=RememberingSource, changes=NumberedChanges)
