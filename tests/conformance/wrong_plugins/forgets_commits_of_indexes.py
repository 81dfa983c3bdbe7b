"""The files of an index are synced, and its commit is not."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_power.py::test_indexes_survive"
SAYS = "no sync made durable"


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        with patch("laketier_lance.indexer.make_durable"):
            return super().publish(plan, built)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("forgets-commits-of-indexes", indexer=Indexer)
