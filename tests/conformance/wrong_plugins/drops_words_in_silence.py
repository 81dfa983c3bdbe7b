"""Nobody is told why a word finds nothing that each row has."""

from __future__ import annotations

from dataclasses import replace

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_index_tellings.py::test_words_that_an_index_drops"
SAYS = "and nobody is told why"


class Snapshot(LanceSearchSnapshot):
    def search(self, request: spi.SearchRequest) -> spi.SearchResult:
        found = super().search(request)
        return replace(found, explain=replace(found.explain, notes=()))


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("drops-words-in-silence", searcher=Searcher)
