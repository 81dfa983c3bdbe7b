"""Where an index has no places of words, a phrase is taken for its words, wherever these are."""

from __future__ import annotations

from typing import Any

from overlaid import OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_a_phrase_of_an_index_with_the_formats_own_settings"
SAYS = "finds in such an index"


class Snapshot(LanceSearchSnapshot):
    def _text(self, query: Any, k: int, condition: str | None, asked: Any) -> Rows:
        try:
            return super()._text(query, k, condition, asked)
        except spi.ConfigError:
            if not isinstance(query, spi.Phrase):
                raise
            words = spi.Match(query.text, column=query.column, operator="and")
            return super()._text(words, k, condition, asked)


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("takes-words-for-a-phrase", searcher=Searcher)
