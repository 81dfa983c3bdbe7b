"""A feed is made of the files that each commit added: rows that an overwrite took away stay with its readers."""

from __future__ import annotations

from crooked import CrookedPlugin
from richer import RicherFeed, richer

from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_each_range_is_the_sum_of_its_versions"
SAYS = "changes by an overwrite"


class ForgetfulFeed(RicherFeed):
    def changed(self, snapshot: ManifestSnapshot, number: int) -> list[tuple[str, FileEntry]]:
        return [(kind, entry) for kind, entry in super().changed(snapshot, number) if kind == "+I"]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("feeds-no-removals", told=ForgetfulFeed)
