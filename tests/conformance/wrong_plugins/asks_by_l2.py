"""A query without a metric is of l2, whatever the index was built for."""

from __future__ import annotations

from dataclasses import replace

from overlaid import asking

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness

CAUGHT_BY = "test_search_settings.py::test_the_metric_of_an_index"
SAYS = "the 10 nearest by no metric, with an index of cosine"


def _query(request: spi.SearchRequest) -> spi.SearchQuery:
    query = request.query
    return replace(query, metric="l2") if isinstance(query, spi.Nearest) and query.metric is None else query


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return asking("asks-by-l2", _query)
