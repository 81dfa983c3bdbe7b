"""What an index covers is told of the first one, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_indexing.py::test_an_index_beside_another"
SAYS = "rows in and not in each of two indexes"


class Indexer(LanceIndexer):
    def indexes(self) -> Sequence[spi.IndexInfo]:
        found = super().indexes()
        rows = [(each.rows_indexed, each.rows_not_indexed) for each in found[:1]]
        return [replace(each, rows_indexed=rows[0][0], rows_not_indexed=rows[0][1]) for each in found]


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("counts-rows-of-the-first-index", indexer=Indexer)
