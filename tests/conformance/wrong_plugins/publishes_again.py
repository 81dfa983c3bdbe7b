"""A publish that is asked for again is done again."""

from __future__ import annotations

from typing import Any

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_a_publish_that_is_repeated"
SAYS = "what a publish answers that is repeated"


class Indexer(LanceIndexer):
    def _is_landed(self, *_: Any) -> bool:
        return False


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("publishes-again", indexer=Indexer)
