"""A plan that is made again, as rows are others by now, is one of all rows, also of those that the index has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_a_plan_that_is_made_again[append-compacted]"
SAYS = "an index whose plan (append) was made again as rows were compacted"


class Indexer(LanceIndexer):
    def replan(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart], max_parts: int) -> spi.IndexPlan:
        anew = super().replan(plan, built, max_parts)
        return replace(anew, parts=self.plan(plan.spec, max_parts, spi.IndexMode.REPLACE).parts, kept=())


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("plans-again-what-it-covers", indexer=Indexer)
