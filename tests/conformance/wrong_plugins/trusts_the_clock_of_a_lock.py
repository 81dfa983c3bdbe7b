"""A lock file tells until when it counts. Later it is taken over: by the clock of who comes."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from crooked import CrookedPlugin
from locking import LockingCommitter, locked

from laketier.registry import hookimpl

CAUGHT_BY = "test_locks.py::test_a_lock_is_taken_over[lease-over]"
SAYS = "its lease was over, and another driver of the epoch came before step"
LEASE_SECONDS = 600.0


def taken(path: Path) -> bool:
    with suppress(FileExistsError), path.open("x", encoding="utf-8") as lock:
        lock.write(str(time.time() + LEASE_SECONDS))
        return True
    with suppress(FileNotFoundError, ValueError):
        if float(path.read_text(encoding="utf-8")) < time.time():
            path.unlink()
    return False


class LeaseCommitter(LockingCommitter):
    def lock(self) -> AbstractContextManager[None]:
        return self.holding_file(taken)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return locked("trusts-the-clock-of-a-lock", LeaseCommitter)
