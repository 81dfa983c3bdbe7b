"""A query without a metric is of l2, whatever the index was built for."""

from __future__ import annotations

from dataclasses import replace

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search_settings.py::test_the_metric_of_an_index"
SAYS = "the 10 nearest by no metric, with an index of cosine"


class Snapshot(LanceSearchSnapshot):
    def search(self, request: spi.SearchRequest) -> spi.SearchResult:
        query = request.query
        if isinstance(query, spi.Nearest) and query.metric is None:
            query = replace(query, metric="l2")
        return super().search(replace(request, query=query))


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("asks-by-l2", searcher=Searcher)
