"""A column of which there is an index of its values, too, has two indexes for words: no word is searched in it."""

from __future__ import annotations

from typing import Any

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_words_of_several_columns"
SAYS = "words are asked of a column that has an index of its values, too: expected no error, found ConfigError"


class Snapshot(LanceSearchSnapshot):
    def _only(self, column: str, kind: str) -> Any:
        return super()._only(column, "")


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("takes-any-index-for-one-of-words", searcher=Searcher)
