"""Ids of commits are looked up in a list that the author keeps short: of two thousand. He has never seen it full."""

from __future__ import annotations

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "2003 commits of others came after the pipeline's, and `open` forgot it"
KEPT = 2_000


class KeepingState(kit.ManifestState):
    def watermark(self, pipeline: str) -> spi.Watermark | None:
        mark = super().watermark(pipeline)
        return None if mark is None or (mark.snapshot_id or 0) < self.head.number - KEPT else mark


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("keeps-two-thousand-commits", **told(KeepingState))
