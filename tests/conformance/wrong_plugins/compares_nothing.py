"""A query for a column without an index finds nothing, instead of an error."""

from __future__ import annotations

from typing import Any

from overlaid import OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_a_request_that_does_not_fit_is_refused"
SAYS = "and no error was raised"


class Snapshot(LanceSearchSnapshot):
    def _check_text_column(self, column: str, phrase: bool) -> None:
        pass

    def _text(self, query: Any, k: int, condition: str | None, asked: Any) -> Rows:
        try:
            return super()._text(query, k, condition, asked)
        except Exception:  # noqa: BLE001 - the mistake
            return []

    def _explain(self, asked: Any) -> spi.SearchExplain:
        return spi.SearchExplain(indexes=(), rows=0, rows_flat=0)


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("compares-nothing", searcher=Searcher)
