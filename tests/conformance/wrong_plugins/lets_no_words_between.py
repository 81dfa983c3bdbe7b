"""The words of a phrase have to stand side by side, whatever it allows."""

from __future__ import annotations

from dataclasses import replace

from overlaid import asking

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness

CAUGHT_BY = "test_search_settings.py::test_words_in_between"
SAYS = "and 1 words in between"


def _query(request: spi.SearchRequest) -> spi.SearchQuery:
    query = request.query
    return replace(query, slop=0) if isinstance(query, spi.Phrase) else query


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return asking("lets-no-words-between", _query)
