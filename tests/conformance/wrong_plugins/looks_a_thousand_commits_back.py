"""Whether a commit landed is asked of the newest thousand: more had to be read by no round of the author's."""

from __future__ import annotations

from itertools import islice

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.kit.manifests.rollup import blocks_back_from
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "landed 1003 commits ago, and `landed` says that it did not"


class BriefState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        blocks = blocks_back_from(self.manifests, self.head.number)
        commits = (commit for block in blocks for commit in reversed(block.commits))
        return any(commit.commit_id == commit_id for commit in islice(commits, 1000))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("looks-a-thousand-commits-back", **told(BriefState))
