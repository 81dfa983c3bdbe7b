"""An answer has a column of the library that nobody asked for."""

from __future__ import annotations

import pyarrow as pa
from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_the_columns_of_an_answer"
SAYS = "the columns of an answer"


class Snapshot(LanceSearchSnapshot):
    def search(self, request: spi.SearchRequest) -> spi.SearchResult:
        found = super().search(request)
        rows = found.rows.append_column("_rowid", pa.array(range(len(found.rows)), pa.uint64()))
        return spi.SearchResult(rows=rows, snapshot_id=found.snapshot_id, explain=found.explain)


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("keeps-its-row-ids", searcher=Searcher)
