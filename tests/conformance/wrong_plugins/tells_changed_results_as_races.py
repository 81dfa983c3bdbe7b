"""A result that is not what a task built is refused as if another commit had come first."""

from __future__ import annotations

from collections.abc import Sequence

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_changes.py::test_a_result_that_somebody_changed"
SAYS = "expected a final error"


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        try:
            return super().publish(plan, built)
        except spi.OutsideTable as error:
            raise spi.Conflict("the files of a segment are others") from error


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("tells-changed-results-as-races", indexer=Indexer)
