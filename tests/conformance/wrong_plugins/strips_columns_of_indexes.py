"""Blanks around the name of a column are taken away, and another column is indexed."""

from __future__ import annotations

from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_columns.py::test_an_index_of_a_column_with_an_odd_name"
SAYS = "its column, and the rows that it has"


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        return super().plan(replace(spec, column=spec.column.strip()), max_parts, mode)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("strips-columns-of-indexes", indexer=Indexer)
