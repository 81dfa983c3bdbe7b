"""A moment to read is made one of Python's dates, which end with the year 9999."""

from __future__ import annotations

from datetime import UTC, datetime

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_time_travel_by_timestamp"
SAYS = "a moment in the year 10000, beyond Python's dates is read, by which all was committed: expected all rows"


class DatedSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        if request.as_of is not None and request.as_of > 0:
            datetime.fromtimestamp(request.as_of / 1000, UTC)
        return super().plan(request)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("travels-by-pythons-dates", source=DatedSource)
