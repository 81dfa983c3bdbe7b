"""A search that looks at each row tells of none that no index covers."""

from __future__ import annotations

from dataclasses import replace

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_index_tellings.py::test_what_a_search_of_vectors_tells"
SAYS = "the rows, and those that no index covers"


class Snapshot(LanceSearchSnapshot):
    def search(self, request: spi.SearchRequest) -> spi.SearchResult:
        found = super().search(request)
        flat = found.explain.rows_flat if found.explain.indexes else 0
        return replace(found, explain=replace(found.explain, rows_flat=flat))


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("tells-looks-at-each-row-as-covered", searcher=Searcher)
