"""It takes the first k rows that match, and sorts these."""

from __future__ import annotations

from typing import Any

from overlaid import MOST, OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_the_best_come_first"
SAYS = "the best 1 rows"


class Snapshot(LanceSearchSnapshot):
    def _text(self, query: Any, k: int, condition: str | None, asked: Any) -> Rows:
        found = sorted(super()._text(query, MOST, condition, asked))[:k]
        return sorted(found, key=lambda each: (-each[1], each[0]))


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("stops-at-k", searcher=Searcher)
