"""All columns of a query count the same."""

from __future__ import annotations

from dataclasses import replace

from overlaid import asking

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness

CAUGHT_BY = "test_search_settings.py::test_the_score_of_the_best_column"
SAYS = "the scores of MultiMatch("


def _query(request: spi.SearchRequest) -> spi.SearchQuery:
    query = request.query
    return replace(query, boosts=None) if isinstance(query, spi.MultiMatch) else query


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return asking("forgets-factors-of-columns", _query)
