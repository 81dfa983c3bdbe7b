"""A commit of no pipeline is another tool's. Of it the feed has what came: the rows as they were are left out."""

from __future__ import annotations

from crooked import CrookedPlugin
from richer import RicherFeed, richer
from updating import UpdatingHarness

from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_changes_make_the_table_of_its_snapshot"
SAYS = "the last of which are of a row that others updated: expected"


class Harness(UpdatingHarness):
    pass


class HalfFeed(RicherFeed):
    def changed(self, snapshot: ManifestSnapshot, number: int) -> list[tuple[str, FileEntry]]:
        found = super().changed(snapshot, number)
        before = snapshot.manifests.read(max(number - 1, 0))
        is_of_others = snapshot.manifests.read(number).watermarks == before.watermarks
        return [(kind, entry) for kind, entry in found if kind == "+I" or not is_of_others]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("feeds-updates-of-others-as-new-rows", told=HalfFeed)
