"""Tables whose commits take a name that looked free: right for one at a time, so they are under a lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from checks_then_renames import CheckingTable
from crooked import CrookedPlugin

from laketier import kit, spi


class LockingCommitter(kit.ManifestCommitter):
    def lock(self) -> AbstractContextManager[object]:
        raise NotImplementedError

    @contextmanager
    def holding_file(self, take: Callable[[Path], bool]) -> Iterator[None]:
        """A lock that is a file, once ``take`` could make it."""
        path = Path(self.table.location) / "_lock"
        if not any(take(path) for _ in _tries()):
            raise spi.Conflict("somebody else commits", where=str(path))
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        with self.lock():
            if self.table.open().snapshot_id != state.snapshot_id:
                raise spi.Conflict("another commit came first", where=str(self.table.location))
            return super().publish(state, results, watermark)


def _tries() -> Iterator[None]:
    for _ in range(100):
        yield
        time.sleep(0.05)


def locked(named: str, committer: type[LockingCommitter]) -> CrookedPlugin:
    """The plugin."""
    return CrookedPlugin(named, table=CheckingTable, committer=committer)
