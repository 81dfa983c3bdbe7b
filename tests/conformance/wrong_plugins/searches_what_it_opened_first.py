"""To open a version takes a while, so what was opened is kept: also what was the newest one then."""

from __future__ import annotations

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_search.py::test_a_searcher_finds_what_came_since"
SAYS = "the rows that a searcher that was there before finds after 5 rounds, as no snapshot is named"
OPENED: dict[tuple[str, int | None], LanceSearchSnapshot] = {}


class Searcher(OverlaidSearcher):
    def at(self, snapshot_id: int | None = None) -> LanceSearchSnapshot:
        key = self.location, snapshot_id
        if key not in OPENED:
            OPENED[key] = super().at(snapshot_id)
        return OPENED[key]


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("searches-what-it-opened-first", searcher=Searcher)
