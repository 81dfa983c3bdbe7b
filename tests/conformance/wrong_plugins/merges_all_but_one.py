"""A merge leaves its last segment out, and says that it did them all."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_merger import LanceIndexMerger
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_answers_after_a_merge"
SAYS = "whose segments were merged"


@dataclass(frozen=True)
class Merger(LanceIndexMerger):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        whole = super().build(part)
        fewer = super().build(replace(part, units=part.units[:-1]))
        told = json.loads(fewer.payload) | {"fragments": json.loads(whole.payload)["fragments"]}
        return replace(fewer, part=part, rows=part.rows, payload=json.dumps(told))


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        plan: Any = super().plan(spec, max_parts, mode)
        if mode is not spi.IndexMode.MERGE:
            return plan
        return replace(plan, builder=Merger(**vars(plan.builder)))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("merges-all-but-one", indexer=Indexer)
