"""Whatever snapshot is asked for, the newest is searched."""

from __future__ import annotations

from typing import Any

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_an_older_snapshot"
SAYS = "the rows that a search of an older snapshot finds"


class Snapshot(LanceSearchSnapshot):
    def __init__(self, dataset: Any, name: str) -> None:
        super().__init__(dataset.checkout_version(dataset.latest_version), name)


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("searches-the-present", searcher=Searcher)
