"""The id of a commit is looked for among appends, as streams make no others."""

from __future__ import annotations

from crooked import CrookedPlugin
from told import told

from laketier import kit
from laketier.kit.manifests.rollup import find_commit
from laketier.registry import hookimpl

CAUGHT_BY = "test_overwrite.py::test_a_batch_overwrite_keeps_all_watermarks"
SAYS = "whether the overwrite of a batch landed, by the id of its commit: expected True, found False"


class AppendsState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        found = find_commit(self.manifests, self.head.number, commit_id)
        return found is not None and found.kind == "append"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("knows-appends-alone", **told(AppendsState))
