"""The rows that came are told before those that went: a reader that merges by key deletes what it has just got."""

from __future__ import annotations

from crooked import CrookedPlugin
from richer import RicherFeed, richer

from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_each_range_is_the_sum_of_its_versions"
SAYS = "within a version the rows that went come before those that came"


class HastyFeed(RicherFeed):
    def changed(self, snapshot: ManifestSnapshot, number: int) -> list[tuple[str, FileEntry]]:
        return super().changed(snapshot, number)[::-1]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("feeds-the-new-first", told=HastyFeed)
