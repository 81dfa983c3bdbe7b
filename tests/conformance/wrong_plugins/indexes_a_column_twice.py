"""A column may have two indexes that answer the same questions, and of which one is asked."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_columns.py::test_a_second_index_of_a_column"
SAYS = "two full-text indexes of a column: expected no error"


class Indexer(LanceIndexer):
    def plan(self, spec: spi.IndexSpec, max_parts: int, mode: spi.IndexMode = spi.IndexMode.CREATE) -> spi.IndexPlan:
        with patch("laketier_lance.indexer.check_alone", lambda *_: None):
            return super().plan(spec, max_parts, mode)

    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        with patch("laketier_lance.indexer.check_alone", lambda *_: None):
            return super().publish(plan, built)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("indexes-a-column-twice", indexer=Indexer)
