"""A new schema begins a new log, as the author's does. Commits before it are not looked for."""

from __future__ import annotations

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.kit.manifests.rollup import find_commit
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_watermarks_survive_a_change"
SAYS = "a commit of 'p' is found by its id after a column was added"


class SinceState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        found = find_commit(self.manifests, self.head.number, commit_id)
        return found is not None and found.number >= self.head.metadata_at


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("landed-since-the-schema-changed", **told(SinceState))
