"""The columns of a table are kept for its changes until they change, under the name of its folder."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_a_table_that_was_made_anew_has_its_own_changes"
SAYS = "the columns of what was appended to a table that was made anew with others"
KEPT: dict[str, tuple[int, pa.Schema]] = {}


class Changes(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        plan = super().plan(start, end, skip_changes=skip_changes)
        where = str(self.source.table.location)
        since, schema = KEPT.get(where, (-1, plan.schema))
        manifests = self.source.table.manifests()
        changed = any(manifests.read(each).metadata_at > since for each in range(since + 1, end))
        KEPT[where] = (end - 1, plan.schema if changed else schema)
        return replace(plan, schema=KEPT[where][1])


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("appends-to-columns-of-a-dropped-table", changes=Changes)
