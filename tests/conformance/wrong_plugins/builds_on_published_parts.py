"""The record of a part stays when it is published, and the next build takes the part for one that nobody published."""

from __future__ import annotations

from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_record import records
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_indexing.py::test_a_build_after_one_that_died"
SAYS = "parts used that are published"


class Indexer(LanceIndexer):
    def resume(self, plan: spi.IndexPlan, max_parts: int) -> spi.IndexPlan:
        with patch("laketier_lance.indexer.taken_over", lambda _, record: record.built):
            kept = super().resume(plan, max_parts)
        if plan.mode is spi.IndexMode.REPLACE:
            there = {segment for each in self.indexes() for segment in each.segments}
            again = tuple(each.built for each in records(self._location) if each.built.segment in there)
            return spi.IndexPlan(plan.plan_id, plan.spec, plan.mode, plan.snapshot_id, plan.parts, plan.builder, again)
        return kept

    def publish(self, plan: spi.IndexPlan, built: list[spi.BuiltIndexPart]) -> spi.IndexInfo:  # type: ignore[override]
        with patch("laketier_lance.indexer.forget_records"):
            return super().publish(plan, built)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("builds-on-published-parts", indexer=Indexer)
