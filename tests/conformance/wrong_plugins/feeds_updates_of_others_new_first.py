"""A commit of no pipeline is another tool's. Of it the feed has the rows as they are before those as they were: a
reader that merges by key deletes what it has just got."""

from __future__ import annotations

from crooked import CrookedPlugin
from richer import RicherFeed, richer
from updating import UpdatingHarness

from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_changes_make_the_table_of_its_snapshot"
SAYS = "which changes of a version are -D, which come first"


class Harness(UpdatingHarness):
    pass


class TurnedFeed(RicherFeed):
    def changed(self, snapshot: ManifestSnapshot, number: int) -> list[tuple[str, FileEntry]]:
        found = super().changed(snapshot, number)
        before = snapshot.manifests.read(max(number - 1, 0))
        is_of_others = snapshot.manifests.read(number).watermarks == before.watermarks
        return found[::-1] if is_of_others else found


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("feeds-updates-of-others-new-first", told=TurnedFeed)
