"""A walk that is to keep fewer candidates than rows are wanted keeps more, and nobody is told."""

from __future__ import annotations

from dataclasses import replace

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search_settings.py::test_how_far_an_index_is_looked_into"
SAYS = "a walk that keeps 4 candidates is asked for 5 rows"


class Snapshot(LanceSearchSnapshot):
    def search(self, request: spi.SearchRequest) -> spi.SearchResult:
        query = request.query
        if isinstance(query, spi.Nearest) and query.ef is not None:
            query = replace(query, ef=max(query.ef, request.k))
        return super().search(replace(request, query=query))


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("keeps-enough-candidates", searcher=Searcher)
