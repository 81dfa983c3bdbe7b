"""The moment of a snapshot goes through a datetime without a zone, which Python takes for one of the host's."""

from __future__ import annotations

from calendar import timegm
from dataclasses import replace
from datetime import datetime

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_surroundings.py::test_moments_of_processes_in_other_zones[day]"
SAYS = "the snapshot of a moment, for who lives in"


class LocalSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        if request.as_of is not None:
            clock = datetime.fromtimestamp(request.as_of / 1000)
            request = replace(request, as_of=1000 * timegm(clock.timetuple()) + request.as_of % 1000)
        return super().plan(request)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("travels-by-its-own-zone", source=LocalSource)
