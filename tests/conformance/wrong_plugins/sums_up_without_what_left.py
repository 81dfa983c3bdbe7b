"""A sum of commits has the files that they added and did not take away. That they took away older ones is not in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.manifests import Manifest, ManifestLog
from laketier.kit.manifests.rollup import Block
from laketier.registry import hookimpl

CAUGHT_BY = "test_upsert.py::test_many_epochs"
SAYS = "the number of splits with a key that 62 commits replaced, or left: expected 1, found 2"
_right = Block.join


def _sum(blocks: Sequence[Block]) -> Block:
    return replace(_right(blocks), removed=())


class SummedTable(FeatherTable):
    def finish(self, manifests: ManifestLog, head: Manifest) -> None:
        with patch.object(Block, "join", staticmethod(_sum)):
            super().finish(manifests, head)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sums-up-without-what-left", table=SummedTable)
