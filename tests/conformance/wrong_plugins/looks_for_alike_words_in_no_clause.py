"""Words that are nearly alike are looked for in the index alone, and a query that is one of these is refused where rows
are in none. A query of several clauses is not looked into."""

from __future__ import annotations

from typing import Any

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search_settings.py::test_words_that_are_nearly_alike"
SAYS = "the rows that Boolean("


class Snapshot(LanceSearchSnapshot):
    def _check_fuzzy(self, query: Any, columns: set[str]) -> None:
        if isinstance(query, spi.Match):
            super()._check_fuzzy(query, columns)


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("looks-for-alike-words-in-no-clause", searcher=Searcher)
