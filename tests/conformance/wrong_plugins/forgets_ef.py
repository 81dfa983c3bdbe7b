"""It leaves out how far a graph is walked, and tells nobody where there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from overlaid import OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_vector_answers.py::test_the_nearest_through_an_index[ivf-flat]"
SAYS = "which has no graph; nobody is told"


class Snapshot(LanceSearchSnapshot):
    def _nearest(self, query: spi.Nearest, *rest: Any) -> Rows:
        return super()._nearest(replace(query, ef=None), *rest)


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("forgets-ef", searcher=Searcher)
