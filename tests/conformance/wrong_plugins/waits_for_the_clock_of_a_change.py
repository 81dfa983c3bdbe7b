"""A commit has to be later than the last change of the table, by the clock of whoever commits."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_clocks.py::test_changes_of_hosts_whose_clocks_differ"
SAYS = "the table was changed in the future"


class Committer(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        if state.head.kind == "alter" and state.head.at > spi.host_time() + 60_000:
            raise spi.CommitError("the table was changed in the future", fix="Wait.")
        return super().publish(state, results, watermark)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("waits-for-the-clock-of-a-change", committer=Committer)
