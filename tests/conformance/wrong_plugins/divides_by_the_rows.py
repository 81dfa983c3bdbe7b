"""A plan of a table without rows ends in an error of Python."""

from __future__ import annotations

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_columns.py::test_an_index_of_a_table_without_rows"
SAYS = "an index of a table without rows: expected no error, found ZeroDivisionError"


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        most = max_parts if max_parts < 2 else min(max_parts, max(2, 10_000_000 // self._open().count_rows()))
        return super().plan(spec, most, mode)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("divides-by-the-rows", indexer=Indexer)
