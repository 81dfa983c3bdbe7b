"""The factor of a query of words is passed over."""

from __future__ import annotations

from dataclasses import replace

from overlaid import asking

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness

CAUGHT_BY = "test_search_settings.py::test_a_score_is_made_of_those_of_its_parts"
SAYS = "the scores of Match("


def _query(request: spi.SearchRequest) -> spi.SearchQuery:
    query = request.query
    return replace(query, boost=1.0) if isinstance(query, spi.Match) else query


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return asking("forgets-factors", _query)
