"""A part is lost on the way to the commit, and nobody counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_parts_answer_as_one"
SAYS = "rows in an index of 2 parts"


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        if len(built) < 2:
            return super().publish(plan, built)
        return super().publish(
            replace(plan, parts=plan.parts[:-1]), [each for each in built if each.part.number < len(plan.parts) - 1]
        )


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("publishes-all-but-the-last", indexer=Indexer)
