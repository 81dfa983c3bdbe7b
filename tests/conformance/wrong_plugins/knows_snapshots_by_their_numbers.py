"""A snapshot of a table that was made anew is taken for that of the same number."""

from __future__ import annotations

from overlaid import OverlaidSearcher, overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.searcher import LanceSearchSnapshot

CAUGHT_BY = "test_index_tellings.py::test_the_identity_of_a_snapshot"
SAYS = "a table that was made anew has the identity of the one before"


class Snapshot(LanceSearchSnapshot):
    @property
    def identity(self) -> str:
        return str(self.snapshot_id)


class Searcher(OverlaidSearcher):
    snapshot = Snapshot


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("knows-snapshots-by-their-numbers", searcher=Searcher)
