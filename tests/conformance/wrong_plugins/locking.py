"""Tables whose commits take a name that looked free: right for one at a time, so they are under a lock."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from checks_then_renames import CheckingTable
from crooked import CrookedPlugin

from laketier import kit, spi


class LockingCommitter(kit.ManifestCommitter):
    def lock(self) -> AbstractContextManager[object]:
        raise NotImplementedError

    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        with self.lock():
            if self.table.open().snapshot_id != state.snapshot_id:
                raise spi.Conflict("another commit came first", where=str(self.table.location))
            return super().publish(state, results, watermark)


def locked(named: str, committer: type[LockingCommitter]) -> CrookedPlugin:
    """The plugin."""
    return CrookedPlugin(named, table=CheckingTable, committer=committer)
