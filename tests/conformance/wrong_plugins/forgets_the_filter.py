"""The filters are checked, and never handed on."""

from __future__ import annotations

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_a_filter_chooses_the_rows_that_are_searched"
SAYS = "where size = 4"


class Snapshot(LanceSearchSnapshot):
    def _condition(self, request: spi.SearchRequest) -> str | None:
        super()._condition(request)
        return None


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("forgets-the-filter", searcher=Searcher)
