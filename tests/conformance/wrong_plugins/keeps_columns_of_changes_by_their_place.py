"""The columns of a table are kept for the next plan of changes, by its folder: those of a table that was dropped are
told of the next one there, whose own are nulls, or gone."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin

from laketier import kit
from laketier.registry import hookimpl
from laketier.spi import ScanPlan

CAUGHT_BY = "test_catalog.py::test_drop"
SAYS = "changes of a table with the columns id and note: expected"
_KEPT: dict[str, pa.Schema] = {}


class KeepingChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        found = super().plan(start, end, skip_changes=skip_changes)
        return replace(found, schema=_KEPT.setdefault(self.source.table.store.root, found.schema))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-columns-of-changes-by-their-place", changes=KeepingChanges)
