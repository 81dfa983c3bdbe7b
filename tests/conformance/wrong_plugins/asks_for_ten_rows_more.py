"""It asks for ten rows more than it needs, and rows that tie beyond these may be any of them."""

from __future__ import annotations

from typing import Any

from overlaid import MOST, OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_many_that_are_equally_good"
SAYS = "of 240 rows with two scores"


class Snapshot(LanceSearchSnapshot):
    def _text(self, query: Any, k: int, condition: str | None, asked: Any) -> Rows:
        found = super()._text(query, MOST, condition, asked)
        better = [row for row in found[:k] if row[1] != found[k - 1][1]] if k <= len(found) else found
        tied = [row for row in found[len(better) :] if row[1] == found[k - 1][1]] if k <= len(found) else []
        return [*better, *tied[-(k + 10) :]][:k]


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("asks-for-ten-rows-more", searcher=Searcher)
