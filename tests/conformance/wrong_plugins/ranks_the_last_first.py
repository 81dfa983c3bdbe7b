"""Rows of equal score come in the order of the table, backwards."""

from __future__ import annotations

from typing import Any

from overlaid import MOST, OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_the_best_come_first"
SAYS = "in another order"


class Snapshot(LanceSearchSnapshot):
    def _text(self, query: Any, k: int, condition: str | None, asked: Any) -> Rows:
        found = super()._text(query, MOST, condition, asked)
        return sorted(found, key=lambda each: (-each[1], -each[0]))[:k]


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("ranks-the-last-first", searcher=Searcher)
