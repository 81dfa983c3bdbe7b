"""Each part but the first has one file: one task does most of the work."""

from __future__ import annotations

from dataclasses import replace

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_tellings.py::test_what_a_plan_tells"
SAYS = "its parts are of"


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        plan = super().plan(spec, max_parts, mode)
        if len(plan.parts) != 2 or any(len(part.units) < 2 for part in plan.parts):
            return plan
        units = [unit for part in plan.parts for unit in part.units]
        each = sum(part.rows for part in plan.parts) // len(units)
        first = spi.IndexPart(0, tuple(units[:-1]), each * (len(units) - 1))
        return replace(plan, parts=(first, spi.IndexPart(1, (units[-1],), each)))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("gives-most-rows-to-one-part", indexer=Indexer)
