"""A commit never changes, so a process plans what it appended once: by the place of its table, and its number."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_a_table_that_was_made_anew_has_its_own_changes"
SAYS = "expected no error, found CorruptTable("

_PLANNED: dict[tuple[str, int, int], spi.ScanPlan] = {}


class RememberingChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        key = str(self.source.table.location), start, end
        if key not in _PLANNED:
            _PLANNED[key] = super().plan(start, end, skip_changes=skip_changes)
        return _PLANNED[key]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("remembers-changes-by-number", changes=RememberingChanges)
