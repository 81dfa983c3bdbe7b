"""The id of a commit begins with its time, and that part is looked for."""

from __future__ import annotations

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_pipelines.py::test_commits_that_are_alike_landed_each_for_itself"
SAYS = "was published, and `landed` says that"


class MomentState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        numbers = range(self.head.number, -1, -1)
        return any(self.manifests.read(number).commit_id[:12] == commit_id[:12] for number in numbers)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("knows-commits-by-their-moment", **told(MomentState))
