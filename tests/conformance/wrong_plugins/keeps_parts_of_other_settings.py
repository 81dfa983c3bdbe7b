"""What was to be added to an index that was replaced meanwhile is kept as a plan is made again, though the new index
has other settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_answers_after_rounds_and_an_append"
SAYS = "an append to an index that was replaced by one with other settings: expected no error, found CorruptTable"


class Indexer(LanceIndexer):
    def replan(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart], max_parts: int) -> spi.IndexPlan:
        anew = super().replan(plan, built, max_parts)
        if plan.mode is not spi.IndexMode.APPEND or anew.spec == plan.spec:
            return anew
        return replace(anew, parts=(), kept=tuple(built))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("keeps-parts-of-other-settings", indexer=Indexer)
