"""The commit of an index is synced, and the files that its tasks wrote are not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_power.py::test_indexes_survive"
SAYS = "no sync made durable"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        with patch("laketier_lance.index_builder._sync"):
            return super().build(part)


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        plan: Any = super().plan(spec, max_parts, mode)
        return replace(plan, builder=Builder(**vars(plan.builder)))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("forgets-files-of-indexes", indexer=Indexer)
