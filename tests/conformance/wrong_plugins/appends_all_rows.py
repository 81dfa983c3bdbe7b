"""An append builds all rows anew, and replaces the index with them."""

from __future__ import annotations

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_answers_after_rounds_and_an_append"
SAYS = "the rows of the parts of an append"


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        return super().plan(spec, max_parts, spi.IndexMode.REPLACE if mode is spi.IndexMode.APPEND else mode)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("appends-all-rows", indexer=Indexer)
