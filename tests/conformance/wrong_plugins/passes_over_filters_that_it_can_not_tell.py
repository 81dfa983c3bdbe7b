"""A filter that the library can not be told is left out, and nobody is told."""

from __future__ import annotations

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.filters import to_sql
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search_settings.py::test_filters_of_each_type_choose_the_rows"
SAYS = "the rows that it finds"


class Snapshot(LanceSearchSnapshot):
    def _condition(self, request: spi.SearchRequest) -> str | None:
        sqls = [sql for each in request.filters if (sql := to_sql(each, self.schema)) is not None]
        return " AND ".join(sqls) or None


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("passes-over-filters-that-it-can-not-tell", searcher=Searcher)
