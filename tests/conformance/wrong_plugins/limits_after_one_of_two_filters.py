"""A plan is cut to its limit once a filter was applied. That another one remains is overlooked."""

from __future__ import annotations

from dataclasses import replace

from local import reading

from laketier import spi
from laketier.kit.scans import cut_to_limit
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_source.py::test_a_limit_counts_after_the_filters"
SAYS = "and a filter that only the last rows of a split pass, id >= 0 and value > 5253.75: expected 1, found 0"


class CuttingSource(LocalFileSource):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        if request.limit is None or len(plan.remaining) == len(request.filters):
            return plan
        return replace(plan, splits=tuple(cut_to_limit(plan.splits, request.limit)))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("limits-after-one-of-two-filters", CuttingSource)
