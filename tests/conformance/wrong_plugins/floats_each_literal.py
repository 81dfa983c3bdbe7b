"""To look at the bounds of files, each number of a filter becomes a float, however large it is."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import FEATURES, Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_filters.py::test_filters_by_numbers_beyond_floats[double]"
SAYS = "a column of type double is filtered by a number beyond it (Leaf =): expected rows, found OverflowError"


class Floating(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        numbers = [each.value for each in request.filters if isinstance(each, spi.Leaf) and type(each.value) is int]
        self._skipped_by(list(map(float, numbers)))
        return super().plan(request)

    def _skipped_by(self, numbers: list[float]) -> None:
        """No file yet."""


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("floats-each-literal", FEATURES, source=Floating)
