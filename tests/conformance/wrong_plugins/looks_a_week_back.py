"""Whether a commit landed is asked of those of the last week: no driver waits longer for an answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from crooked import CrookedPlugin
from told import told

from laketier import kit, spi
from laketier.kit.manifests.rollup import find_commit
from laketier.registry import hookimpl

CAUGHT_BY = "test_clocks.py::test_rounds_of_hosts_whose_clocks_differ"
SAYS = "a host whose clock is years ahead asks for a commit of today"


class RecentState(kit.ManifestState):
    def landed(self, commit_id: str) -> bool:
        found = find_commit(self.manifests, self.head.number, commit_id)
        oldest = datetime.now(UTC) - timedelta(days=7)
        return found is not None and found.at >= oldest.timestamp() * 1000


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("looks-a-week-back", **told(RecentState))
