"""Of several columns of vectors, a query that names none is of the first."""

from __future__ import annotations

from dataclasses import replace

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search_settings.py::test_vectors_of_other_numbers[double]"
SAYS = "with two columns of vectors, and names none"


class Snapshot(LanceSearchSnapshot):
    def search(self, request: spi.SearchRequest) -> spi.SearchResult:
        query = request.query
        if isinstance(query, spi.Nearest) and query.column is None:
            query = replace(query, column=next(each.name for each in self.schema if hasattr(each.type, "list_size")))
        return super().search(replace(request, query=query))


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("searches-the-first-column-of-vectors", searcher=Searcher)
