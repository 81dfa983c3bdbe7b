"""A vector that has no distance to any row finds nothing, and nobody is told why."""

from __future__ import annotations

from typing import Any

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search_settings.py::test_a_vector_that_has_no_distance"
SAYS = "finds, which is not refused"


class Snapshot(LanceSearchSnapshot):
    def _check_vector(self, *_: Any) -> None:
        return


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("finds-nothing-near-far-vectors", searcher=Searcher)
