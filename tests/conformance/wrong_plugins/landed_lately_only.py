"""Whether a commit landed is asked of the newest fifty; an older one is said not to have landed."""

from __future__ import annotations

from dataclasses import dataclass

from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_depth.py::test_commits_of_others_hide_nothing"
SAYS = "and `landed` says that it did not"


@dataclass(frozen=True)
class ShortState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        newest = range(max(0, self.head.number - 50), self.head.number + 1)
        return any(self.manifests.read(number).commit_id == commit_id for number in newest)


class ShortTable(FeatherTable):
    def open(self) -> kit.ManifestState:
        state = super().open()
        return ShortState(state.manifests, state.head, state.metadata)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("landed-lately-only", table=ShortTable)
