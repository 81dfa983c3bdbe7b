"""A limit waits for the filters that the source applies. It was forgotten that some are left to the reader."""

from __future__ import annotations

from dataclasses import replace

from sieving import SievingSource, sieving

from laketier import spi
from laketier.kit.scans import cut_to_limit
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_a_limit_counts_after_the_filters"
SAYS = "a filter that only the last rows of a split pass, value > 5253.75: expected 1, found 0"


class HastySource(SievingSource):
    """Waits for filters by ``id`` alone."""

    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        left = tuple(each for each in request.filters if spi.columns_of([each]) != {"id"})
        if not left:
            return super().plan(request)
        plan = super().plan(replace(request, filters=()))
        splits = plan.splits if request.limit is None else tuple(cut_to_limit(list(plan.splits), request.limit))
        return replace(plan, splits=splits, remaining=request.filters)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return sieving("limits-what-remains", HastySource)
