"""A part of a condition that can be pushed down is pushed down, also where another part is enough."""

from __future__ import annotations

from dataclasses import replace

from sieving import SievingSource, sieving, takes

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_a_filter_loses_no_row_and_adds_none[or-first]"
SAYS = "rows of the filter 'or-first'"


class PartSource(SievingSource):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        whole = next((f for f in request.filters if isinstance(f, spi.Or) and takes(f.children[0])), None)
        if whole is None:
            return super().plan(request)
        first = whole.children[0]
        others = tuple(each for each in request.filters if each is not whole)
        return super().plan(replace(request, filters=(first, *others)))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return sieving("takes-the-first-of-or", PartSource)
