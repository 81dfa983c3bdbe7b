"""A build that goes on takes all parts that are there, however many a plan may have."""

from __future__ import annotations

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_builds.py::test_a_build_goes_on_in_other_parts[1]"
SAYS = "a plan of 1 parts that goes on"


class Indexer(LanceIndexer):
    def resume(self, plan: spi.IndexPlan, max_parts: int) -> spi.IndexPlan:
        return super().resume(plan, 99)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("goes-on-from-more-parts-than-were-asked-for", indexer=Indexer)
