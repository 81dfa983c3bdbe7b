"""A sum of commits begins with the overwrite among them. Where there are two, with the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests import Manifest, ManifestLog
from laketier.kit.manifests.rollup import Block
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "commits of others came since, and each epoch's rows are there once: expected"
_right = Block.join


def _sum(blocks: Sequence[Block]) -> Block:
    starts = [number for number, block in enumerate(blocks) if block.resets]
    if len(starts) < 2:
        return _right(blocks)
    later = [replace(block, commits=()) for block in blocks[starts[0] :]]
    return replace(_right(blocks), files=_right(later).files)


class SummedTable(FeatherTable):
    def finish(self, manifests: ManifestLog, head: Manifest) -> None:
        with patch.object(Block, "join", staticmethod(_sum)):
            super().finish(manifests, head)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sums-up-from-the-first-overwrite", table=SummedTable)
