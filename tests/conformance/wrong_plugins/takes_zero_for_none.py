"""Whether a snapshot was asked for is told by its truth, and the first one has the number 0."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_each_can_be_read"
SAYS = "the snapshot of a plan of a listed one: expected 0, found 3"


class TruthfulSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        return super().plan(replace(request, snapshot_id=request.snapshot_id or None))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-zero-for-none", source=TruthfulSource)
