"""Whether a commit landed is told by the watermarks: each has the id of its commit, and nothing of those before."""

from __future__ import annotations

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_a_commit_is_found_by_its_id[batch]"
SAYS = "a commit that landed is found by its id, behind three others"


class MarkedState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        marks = map(self.watermark, self.pipelines())
        return commit_id in {self.head.commit_id, *(mark.commit_id for mark in marks if mark is not None)}


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("knows-last-commits-alone", **told(MarkedState))
