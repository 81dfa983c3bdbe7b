"""Rows that came after the index are left out: it asks the library for a fast search."""

from __future__ import annotations

from typing import Any

from overlaid import MOST, OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_rows_that_no_index_covers_are_found"
SAYS = "45 of them not in the index"


class Snapshot(LanceSearchSnapshot):
    def _text(self, query: Any, k: int, condition: str | None, asked: Any) -> Rows:
        found = super()._text(query, MOST, condition, asked)
        covered = {int(each) for index in self._indexes for each in index.segments[0].fragment_ids}
        covered = {int(n) for index in self._indexes for segment in index.segments for n in segment.fragment_ids}
        return [row for row in found if row[0] >> 32 in covered][:k]


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("searches-indexes-alone", searcher=Searcher)
