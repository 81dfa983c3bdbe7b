"""A walk that is to keep fewer candidates than rows are wanted keeps more, and nobody is told."""

from __future__ import annotations

from dataclasses import replace

from overlaid import asking

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness

CAUGHT_BY = "test_search_settings.py::test_how_far_an_index_is_looked_into"
SAYS = "a walk that keeps 4 candidates is asked for 5 rows"


def _query(request: spi.SearchRequest) -> spi.SearchQuery:
    query = request.query
    return (
        replace(query, ef=max(query.ef, request.k))
        if isinstance(query, spi.Nearest) and query.ef is not None
        else query
    )


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return asking("keeps-enough-candidates", _query)
