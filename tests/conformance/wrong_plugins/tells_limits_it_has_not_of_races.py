"""A limit that a kind of index has not is refused as if somebody else had come first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_indexing.py::test_what_does_not_fit_is_refused_before_a_task_runs"
SAYS = "is to be built within a byte"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def within(self, resources: spi.IndexResources) -> Any:
        try:
            return super().within(resources)
        except spi.FeatureNotSupported as error:
            raise spi.Conflict("there is no such limit") from error


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        plan: Any = super().plan(spec, max_parts, mode)
        return plan if mode is spi.IndexMode.MERGE else replace(plan, builder=Builder(**vars(plan.builder)))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("tells-limits-it-has-not-of-races", indexer=Indexer)
