"""A task names its folder by its part, so that two runs write into one."""

from __future__ import annotations

import shutil
import uuid
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
SAYS = "have a segment in common"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        built = super().build(part)
        name = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.plan_id}{part.number}")
        folder = Path(self.location, "_indices", str(name))
        if folder.exists():
            shutil.rmtree(folder)
        Path(self.location, "_indices", built.segment).rename(folder)
        return replace(built, segment=str(name))


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        plan: Any = super().plan(spec, max_parts, mode)
        return replace(plan, builder=Builder(**vars(plan.builder)))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("writes-into-one-folder", indexer=Indexer)
