"""One row too many: it counts them from 0."""

from __future__ import annotations

from typing import Any

from overlaid import OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_the_best_come_first"
SAYS = "the best 1 rows"


class Snapshot(LanceSearchSnapshot):
    def _text(self, query: Any, k: int, condition: str | None, asked: Any) -> Rows:
        return super()._text(query, k + 1, condition, asked)


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("counts-k-from-nothing", searcher=Searcher)
