"""Each run of a task leaves a note of its rows, and they are added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_a_task_that_runs_twice[in-turn]"
SAYS = "an index whose tasks ran twice"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        built = super().build(part)
        Path(self.location, f"{built.segment}.rows").write_text(str(built.rows))
        return built


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        plan: Any = super().plan(spec, max_parts, mode)
        return replace(plan, builder=Builder(**vars(plan.builder)))

    def indexes(self) -> Sequence[spi.IndexInfo]:
        rows = sum(int(note.read_text()) for note in Path(self._location).glob("*.rows"))
        return [replace(each, rows_indexed=rows) for each in super().indexes()]


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("counts-each-run", indexer=Indexer)
