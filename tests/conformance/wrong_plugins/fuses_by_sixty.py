"""Whatever constant a query names, two lists are fused by the usual one."""

from __future__ import annotations

from dataclasses import replace

from overlaid import asking

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness

CAUGHT_BY = "test_search_settings.py::test_the_constant_and_the_depth_of_a_hybrid"
SAYS = "the scores of a Hybrid of constant 1.0"


def _query(request: spi.SearchRequest) -> spi.SearchQuery:
    query = request.query
    return replace(query, constant=60.0) if isinstance(query, spi.Hybrid) else query


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return asking("fuses-by-sixty", _query)
