"""A builder within a limit stops where its memory ends, and says that it has all the rows of its part."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.index_units import fragment_of
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_indexing.py::test_an_index_within_a_limit[64-mib]"
SAYS = "an index that was built within 67108864 bytes: the rows where"


@dataclass(frozen=True)
class Bounded(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        built = super().build(replace(part, units=part.units[:1]))
        told = json.loads(built.payload) | {"fragments": sorted(map(fragment_of, part.units))}
        return replace(built, part=part, rows=part.rows, payload=json.dumps(told))


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def within(self, resources: spi.IndexResources) -> spi.LakeIndexBuilder:
        return Bounded(**vars(super().within(resources)))


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        plan: Any = super().plan(spec, 1, mode)
        return replace(plan, builder=Builder(**vars(plan.builder)))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("indexes-what-fits-its-memory", indexer=Indexer)
