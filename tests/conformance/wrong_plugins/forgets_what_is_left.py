"""A build that goes on after one that died publishes what that had finished, and takes it for all."""

from __future__ import annotations

from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_indexing.py::test_a_build_after_one_that_died"
SAYS = "rows that a plan which goes on builds and keeps"


class Indexer(LanceIndexer):
    def resume(self, plan: spi.IndexPlan, max_parts: int) -> spi.IndexPlan:
        found = super().resume(plan, max_parts)
        return replace(found, parts=(), kept=found.kept[:1]) if found.kept else found


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("forgets-what-is-left", indexer=Indexer)
