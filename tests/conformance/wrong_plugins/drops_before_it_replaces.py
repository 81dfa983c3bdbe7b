"""An index is dropped, and then the new one is published."""

from __future__ import annotations

from collections.abc import Sequence

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_no_snapshot_has_half_an_index"
SAYS = "an index is not there that snapshot"


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        if plan.mode is spi.IndexMode.REPLACE and self.indexes():
            self.drop(plan.spec.name)
        return super().publish(plan, built)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("drops-before-it-replaces", indexer=Indexer)
