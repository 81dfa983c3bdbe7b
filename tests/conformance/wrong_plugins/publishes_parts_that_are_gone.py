"""It is not looked at whether the files of a part are there."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_changes.py::test_files_of_a_result_that_are_not_as_they_were"
SAYS = "an index is published whose file"


class Indexer(LanceIndexer):
    def publish(self, plan: spi.IndexPlan, built: Sequence[spi.BuiltIndexPart]) -> spi.IndexInfo:
        with patch("laketier_lance.index_builder.local_path", lambda _: None):
            return super().publish(plan, built)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("publishes-parts-that-are-gone", indexer=Indexer)
