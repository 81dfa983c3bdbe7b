"""What a part covers is named by numbers, which a table that was made anew has, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.index_units import unit_rows
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_builds.py::test_a_table_that_was_dropped_since_the_plan[made-anew-create]"
SAYS = "and made anew"


def _number(unit: str) -> str:
    return unit.partition("@")[0]


def _by_number(dataset: Any, column: str) -> dict[str, int]:
    return {_number(unit): rows for unit, rows in unit_rows(dataset, column).items()}


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        with patch("laketier_lance.index_builder.unit_rows", _by_number):
            return super().build(part)


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        plan = super().plan(spec, max_parts, mode)
        parts = tuple(replace(part, units=tuple(map(_number, part.units))) for part in plan.parts)
        return replace(plan, parts=parts, builder=Builder(**vars(plan.builder)))

    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        with patch("laketier_lance.indexer.unit_rows", _by_number):
            return super().publish(plan, built)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("names-files-by-their-numbers", indexer=Indexer)
