"""An index of vectors is asked, and the rows that it does not cover are left out."""

from __future__ import annotations

from typing import Any

from overlaid import OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_vector_answers.py::test_the_nearest_through_an_index[ivf-flat]"
SAYS = "40 rows that it does not cover"


class Snapshot(LanceSearchSnapshot):
    def _nearest(self, query: spi.Nearest, k: int, condition: str | None, asked: Any) -> Rows:
        covered = {int(n) for index in self._indexes for segment in index.segments for n in segment.fragment_ids}
        found: Any = super()._nearest(query, k, condition, asked)
        return [row for row in found if not covered or row[0] >> 32 in covered]


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("searches-vectors-beside-the-table", searcher=Searcher)
