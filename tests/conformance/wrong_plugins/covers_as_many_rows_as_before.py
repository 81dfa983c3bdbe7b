"""An index covers a table that has as many rows as the index: rows that others changed since are not looked at."""

from __future__ import annotations

from typing import Any

from overlaid import MOST, OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_foreign_updates.py::test_an_index_of_rows_that_others_updated"
SAYS = "an index of rows of which others updated some: the rows that their new word finds"


class Snapshot(LanceSearchSnapshot):
    def _text(self, query: Any, k: int, condition: str | None, asked: Any) -> Rows:
        found = super()._text(query, MOST, condition, asked)
        covered = {int(n) for index in self._indexes for segment in index.segments for n in segment.fragment_ids}
        as_many = sum(self._rows.values()) == 60 * len(covered)
        return [row for row in found if not as_many or row[0] >> 32 in covered][:k]


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("covers-as-many-rows-as-before", searcher=Searcher)
