"""An index of a value within a column is one of the column."""

from __future__ import annotations

from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_indexing.py::test_what_does_not_fit_is_refused_before_a_task_runs"
SAYS = "a value within a column is indexed"


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        return super().plan(replace(spec, column=spec.column.partition(".")[0]), max_parts, mode)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("indexes-the-whole-for-a-part-of-it", indexer=Indexer)
