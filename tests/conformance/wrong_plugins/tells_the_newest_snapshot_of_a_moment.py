"""A plan of a moment has the rows of then and tells the snapshot of now: who follows the table from it on lacks what
came in between."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_time_travel_by_timestamp"
SAYS = "the snapshot that a plan of a moment tells, from which somebody may read on: expected 1, found 2"


class NewestSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        if request.as_of is None:
            return plan
        return replace(plan, snapshot_id=self.table.manifests().current()[0].number)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("tells-the-newest-snapshot-of-a-moment", source=NewestSource)
