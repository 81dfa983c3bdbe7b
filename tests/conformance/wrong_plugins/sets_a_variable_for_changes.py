"""How many changes are read at once is told to the library below by a variable."""

from __future__ import annotations

import os

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the variable FEATHER_CHANGES"


class TellingChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        os.environ["FEATHER_CHANGES"] = "1"
        return super().plan(start, end, skip_changes=skip_changes)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("sets-a-variable-for-changes", changes=TellingChanges)
