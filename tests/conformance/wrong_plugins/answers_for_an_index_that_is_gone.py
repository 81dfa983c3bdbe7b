"""Where there is nothing to publish, the index is told as it was planned."""

from __future__ import annotations

from collections.abc import Sequence

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_changes.py::test_an_append_of_nothing_to_an_index_that_is_gone"
SAYS = "an append of nothing is published, and its index was dropped"


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        if built:
            return super().publish(plan, built)
        spec, at = plan.spec, plan.snapshot_id
        return spi.IndexInfo(
            name=spec.name,
            column=spec.column,
            kind=spec.kind,
            options=spec.options,
            segments=("none",),
            rows_indexed=0,
            rows_not_indexed=0,
            snapshot_id=at,
        )


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("answers-for-an-index-that-is-gone", indexer=Indexer)
