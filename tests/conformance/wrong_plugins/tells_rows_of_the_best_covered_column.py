"""Of two columns the rows are told that no index of either covers."""

from __future__ import annotations

from dataclasses import replace

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_index_tellings.py::test_what_a_search_of_words_tells"
SAYS = "the rows, and those that no index covers"


class Snapshot(LanceSearchSnapshot):
    def search(self, request: spi.SearchRequest) -> spi.SearchResult:
        found = super().search(request)
        most = max((each.rows for each in found.explain.indexes), default=0)
        return replace(found, explain=replace(found.explain, rows_flat=found.explain.rows - most))


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("tells-rows-of-the-best-covered-column", searcher=Searcher)
