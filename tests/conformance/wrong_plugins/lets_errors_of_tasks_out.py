"""What its library says of rows that it can't index comes out of a task as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_search.py::test_a_search_of_damaged_files"
SAYS = "words are indexed of a table whose file"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def build(self, part: spi.IndexPart) -> spi.BuiltIndexPart:
        try:
            return super().build(part)
        except spi.TableError as error:
            raise error.__cause__ or error from None


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        plan: Any = super().plan(spec, max_parts, mode)
        return plan if mode is spi.IndexMode.MERGE else replace(plan, builder=Builder(**vars(plan.builder)))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("lets-errors-of-tasks-out", indexer=Indexer)
