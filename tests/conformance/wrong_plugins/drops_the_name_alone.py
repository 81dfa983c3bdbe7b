"""A dropped index is not listed any more, and goes on to answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer

CAUGHT_BY = "test_index_answers.py::test_answers_after_a_drop"
SAYS = "words are asked of an index that was dropped"


class Indexer(LanceIndexer):
    def drop(self, name: str) -> None:
        Path(self._location, f"{name}.dropped").touch()

    def indexes(self) -> Sequence[spi.IndexInfo]:
        return [each for each in super().indexes() if not Path(self._location, f"{each.name}.dropped").exists()]


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("drops-the-name-alone", indexer=Indexer)
