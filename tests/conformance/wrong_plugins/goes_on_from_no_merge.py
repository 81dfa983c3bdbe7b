"""A merge that goes on forgets the segments of which the one before had made nothing yet."""

from __future__ import annotations

from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_builds.py::test_a_merge_goes_on"
SAYS = "a merge that goes on: what it merges"


class Indexer(LanceIndexer):
    def resume(self, plan: spi.IndexPlan, max_parts: int) -> spi.IndexPlan:
        found = super().resume(plan, max_parts)
        return replace(found, kept=found.kept[:1]) if plan.mode is spi.IndexMode.MERGE else found


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("goes-on-from-no-merge", indexer=Indexer)
