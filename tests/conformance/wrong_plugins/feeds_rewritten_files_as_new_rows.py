"""A property says whether changed rows are marked in their files, or the files are written anew. Of a table with the
latter the feed has what came, and no row as it was before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from crooked import CrookedPlugin
from richer import RicherFeed, richer
from updating import UpdatingHarness

from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_changes_make_the_table_under_each_property"
SAYS = "rows of a table with acme.write-mode = 'copy-on-write' after the changes of its feed: expected"
MODE = "acme.write-mode"


class Harness(UpdatingHarness):
    table_properties: ClassVar[Mapping[str, Sequence[str]]] = {MODE: ("merge-on-read", "copy-on-write")}


class HalfFeed(RicherFeed):
    def changed(self, snapshot: ManifestSnapshot, number: int) -> list[tuple[str, FileEntry]]:
        found = super().changed(snapshot, number)
        is_whole = snapshot.descriptor.properties.get(MODE) != "copy-on-write"
        return [(kind, entry) for kind, entry in found if is_whole or kind == "+I"]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("feeds-rewritten-files-as-new-rows", told=HalfFeed)
