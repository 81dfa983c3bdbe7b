"""What was indexed is published, also where the files are others now."""

from __future__ import annotations

from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_a_plan_that_is_stale[overwritten]"
SAYS = "that knows no row of the table"


class Indexer(LanceIndexer):
    def _obstacle(self, *_: Any) -> str:
        return ""


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("publishes-whatever-the-table-is", indexer=Indexer)
