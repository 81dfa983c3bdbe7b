"""Who holds the lock is written into its file, and read once more by another descriptor. As that is closed, the lock of
POSIX is gone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from crooked import CrookedPlugin
from locking import LockingCommitter, locked

from laketier.registry import hookimpl

CAUGHT_BY = "test_locks.py::test_a_lock_of_a_round_is_refused"
SAYS = "when its lock is lost: a process that closes a file by any descriptor"


class ReadingCommitter(LockingCommitter):
    @contextmanager
    def lock(self) -> Iterator[None]:
        path = self.table.location / "_lock"
        with open(path, "a", encoding="utf-8") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            assert path.read_text().splitlines()[-1] == str(os.getpid())
            yield


@hookimpl
def laketier_format() -> CrookedPlugin:
    return locked("closes-what-it-locked", ReadingCommitter)
