"""A task that has too few rows to train on ends in an error of Python."""

from __future__ import annotations

from dataclasses import dataclass, replace
from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_builder import LanceIndexBuilder
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_columns.py::test_an_index_of_few_vectors[1]"
SAYS = "of 1 rows is built: expected no error, found ZeroDivisionError"


@dataclass(frozen=True)
class Builder(LanceIndexBuilder):
    def train(self) -> LanceIndexBuilder:
        rows = self.opened().count_rows() // self.spec.options.get("num_partitions", 1)
        assert 256 // rows > 0
        return super().train()


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        with patch("laketier_lance.index_settings._check_fit", lambda *_: None):
            plan = super().plan(spec, max_parts, mode)
        return replace(plan, builder=Builder(**vars(plan.builder)))


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("trains-on-any-number-of-rows", indexer=Indexer)
