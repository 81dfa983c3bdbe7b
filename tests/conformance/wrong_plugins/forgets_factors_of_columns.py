"""All columns of a query count the same."""

from __future__ import annotations

from dataclasses import replace

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search_settings.py::test_the_score_of_the_best_column"
SAYS = "the scores of MultiMatch("


class Snapshot(LanceSearchSnapshot):
    def search(self, request: spi.SearchRequest) -> spi.SearchResult:
        query = request.query
        if isinstance(query, spi.MultiMatch):
            query = replace(query, boosts=None)
        return super().search(replace(request, query=query))


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("forgets-factors-of-columns", searcher=Searcher)
