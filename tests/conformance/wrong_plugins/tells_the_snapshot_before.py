"""A commit tells the snapshot that it was made on, which is the one that the author had at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_a_replay_writes_nothing"
SAYS = "the snapshot of an epoch that is run again"


class ParentCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        assert isinstance(state, kit.ManifestState)
        return replace(super().publish(state, results, watermark), snapshot_id=state.head.number)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tells-the-snapshot-before", committer=ParentCommitter)
