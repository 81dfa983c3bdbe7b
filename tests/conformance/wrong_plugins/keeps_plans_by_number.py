"""What a snapshot has never changes, so its plan is kept for the process: by the folder of the table and its number. A
table that is made anew there has such numbers, too."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_nothing_of_a_dropped_table_is_in_the_one_that_has_its_name"
SAYS = "a table was made anew, and these are the columns of its snapshot 1: expected ['id', 'text']"
KEPT: dict[tuple[str, spi.ScanRequest], spi.ScanPlan] = {}


class KeepingSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        if request.snapshot_id is None:
            return super().plan(request)
        key = (str(self.table.location), request)
        if key not in KEPT:
            KEPT[key] = super().plan(request)
        return KEPT[key]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-plans-by-number", source=KeepingSource)
