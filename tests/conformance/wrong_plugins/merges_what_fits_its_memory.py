"""Within a limit of its memory a task merges the segments that fit, and says that it merged all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_merger import LanceIndexMerger
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_builds.py::test_a_build_with_the_variables_that_it_needs"
SAYS = "an index (merge) that was built within 100 MiB"


@dataclass(frozen=True)
class Merger(LanceIndexMerger):
    def _segments(self, dataset: Any, part: spi.IndexPart) -> tuple[list[Any], int | None]:
        segments, size = super()._segments(dataset, part)
        return (segments if self.resources.memory is None else segments[:-1]), size


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        plan = super().plan(spec, max_parts, mode)
        if mode is not spi.IndexMode.MERGE:
            return plan
        return replace(plan, builder=Merger(**vars(plan.builder)))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("merges-what-fits-its-memory", indexer=Indexer)
