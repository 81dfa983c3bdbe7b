"""An index takes the options that it knows, and passes over the others: nobody is told that one has no effect."""

from __future__ import annotations

from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_indexing.py::test_what_does_not_fit_is_refused_before_a_task_runs"
SAYS = "an index is given an option that is none: expected"


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        known = {} if spec.kind is spi.IndexKind.BTREE else spec.options
        return super().plan(replace(spec, options=known), max_parts, mode)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("passes-over-options-of-indexes", indexer=Indexer)
