"""Moments of snapshots are shown to the minute, and a moment that is asked for means all of its minute."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_time_travel.py::test_a_commit_is_there_from_its_own_moment_on"
SAYS = "the number of rows at the moment"


class MinuteSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        if request.as_of is not None:
            request = replace(request, as_of=request.as_of // 60_000 * 60_000 + 59_999)
        return super().plan(request)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("travels-to-the-minute", source=MinuteSource)
