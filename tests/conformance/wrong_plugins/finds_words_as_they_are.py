"""How nearly words have to be alike is passed over."""

from __future__ import annotations

from dataclasses import replace

from overlaid import asking

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness

CAUGHT_BY = "test_search_settings.py::test_words_that_are_nearly_alike"
SAYS = "the rows that Match("


def _query(request: spi.SearchRequest) -> spi.SearchQuery:
    query = request.query
    return replace(query, fuzziness=0) if isinstance(query, spi.Match) else query


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return asking("finds-words-as-they-are", _query)
