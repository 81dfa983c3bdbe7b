"""How many candidates a walk keeps is passed over where there is no graph to walk through."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.graph_walk import kept_candidates
from laketier_lance.harness import LanceHarness
from laketier_lance.index_settings import has_graph, kind_of
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search_settings.py::test_how_far_an_index_is_looked_into"
SAYS = "candidates are told to an index without a graph"


def _kept(query: spi.Nearest, k: int, index: Any, *more: Any) -> dict[str, Any]:
    kind = None if index is None else kind_of(index)
    return kept_candidates(query if kind and has_graph(kind) else replace(query, ef=None), k, index, *more)


class Snapshot(LanceSearchSnapshot):
    def search(self, request: spi.SearchRequest) -> spi.SearchResult:
        with patch("laketier_lance.searcher.kept_candidates", _kept):
            return super().search(request)


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("passes-over-candidates-without-a-graph", searcher=Searcher)
