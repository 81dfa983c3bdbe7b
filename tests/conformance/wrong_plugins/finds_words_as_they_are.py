"""How nearly words have to be alike is passed over."""

from __future__ import annotations

from dataclasses import replace

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search_settings.py::test_words_that_are_nearly_alike"
SAYS = "the rows that Match("


class Snapshot(LanceSearchSnapshot):
    def search(self, request: spi.SearchRequest) -> spi.SearchResult:
        query = request.query
        if isinstance(query, spi.Match):
            query = replace(query, fuzziness=0)
        return super().search(replace(request, query=query))


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("finds-words-as-they-are", searcher=Searcher)
