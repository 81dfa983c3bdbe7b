"""Whatever ends a search is the fault of whoever asked."""

from __future__ import annotations

from typing import Any

from overlaid import OverlaidSearcher, Rows, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_a_search_of_damaged_files"
SAYS = "expected an error that tells of damage, found ConfigError"


class Snapshot(LanceSearchSnapshot):
    def _text(self, query: Any, k: int, condition: str | None, asked: Any) -> Rows:
        try:
            return super()._text(query, k, condition, asked)
        except spi.TableError as error:
            raise spi.ConfigError("the query is refused", where="db.t", why=str(error)) from error


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("takes-damage-for-a-bad-query", searcher=Searcher)
