"""A plan that is made again, as a file went with its rows, is one of the rows that it had planned: those that came
meanwhile are in no part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_parts import balanced
from laketier_lance.index_units import unit_rows
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_a_plan_that_is_made_again[create-deleted]"
SAYS = "an index whose plan (create) was made again as rows were deleted: rows in it, and not: expected (310, 0)"


class Indexer(LanceIndexer):
    def replan(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart], max_parts: int) -> spi.IndexPlan:
        anew = super().replan(plan, built, max_parts)
        had = {unit for part in plan.parts for unit in part.units}
        rows = unit_rows(self._open(anew.snapshot_id), anew.spec.column)
        left = {unit: rows[unit] for part in anew.parts for unit in part.units if unit in had}
        return replace(anew, parts=balanced(left, max_parts))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("plans-again-what-it-had-planned", indexer=Indexer)
