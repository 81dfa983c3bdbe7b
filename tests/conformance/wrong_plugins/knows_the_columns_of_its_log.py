"""A log keeps the columns that its table had when it was first asked, and a stream asks one log for years."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_rows_have_the_columns_that_the_table_has_now"
SAYS = "rows of an added column, in changes that were opened before it"


class KnowingChanges(kit.ManifestChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        plan = super().plan(start, end, skip_changes=skip_changes)
        columns: pa.Schema = vars(self).setdefault("columns", plan.schema)
        return replace(plan, schema=columns)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("knows-the-columns-of-its-log", changes=KnowingChanges)
