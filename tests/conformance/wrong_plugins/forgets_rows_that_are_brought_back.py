"""A part that was built while rows were deleted is published, though they are there again."""

from __future__ import annotations

from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_builds.py::test_deleted_rows_that_are_brought_back_since_the_plan[create]"
SAYS = "that was built while some rows were deleted"


class Indexer(LanceIndexer):
    def _brought_back(self, *_: Any) -> set[int]:
        return set()


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("forgets-rows-that-are-brought-back", indexer=Indexer)
