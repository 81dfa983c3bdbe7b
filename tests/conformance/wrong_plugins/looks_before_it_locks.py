"""The state is compared first, and then the lock is taken, under which the commit goes on top of what is there. Another
driver of the same epoch may come in between."""

from __future__ import annotations

import fcntl
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_driver_of_the_same_epoch_before_each_effect"
SAYS = "rows of an epoch of two drivers, which ended with ['PUBLISHED', 'PUBLISHED']"


class LockingCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        if self.table.open().snapshot_id != state.snapshot_id:
            raise spi.Conflict("another commit came first", where=str(self.table.location))
        with open(self.table.location / "_lock", "a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return super().publish(self.table.open(), results, watermark)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("looks-before-it-locks", committer=LockingCommitter)
