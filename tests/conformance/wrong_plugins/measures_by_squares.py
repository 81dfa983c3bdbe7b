"""Whatever the metric, the nearest are those by squares."""

from __future__ import annotations

from typing import Any

from overlaid import OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_the_nearest_are_those_of_a_look_at_each[cosine]"
SAYS = "their distances"


class Snapshot(LanceSearchSnapshot):
    def _nearest(self, query: spi.Nearest, k: int, condition: str | None, asked: Any) -> Rows:
        return super()._nearest(spi.Nearest(query.vector, query.column, "l2"), k, condition, asked)


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("measures-by-squares", searcher=Searcher)
