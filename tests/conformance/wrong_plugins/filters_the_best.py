"""It searches first, and filters the best k then."""

from __future__ import annotations

from typing import Any

from overlaid import MOST, OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_a_filter_chooses_the_rows_that_are_searched"
SAYS = "the best 3 rows"


class Snapshot(LanceSearchSnapshot):
    def _text(self, query: Any, k: int, condition: str | None, asked: Any) -> Rows:
        best = super()._text(query, k, None, asked)
        kept = {row for row, _ in super()._text(query, MOST, condition, asked)}
        return [row for row in best if row[0] in kept]


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("filters-the-best", searcher=Searcher)
