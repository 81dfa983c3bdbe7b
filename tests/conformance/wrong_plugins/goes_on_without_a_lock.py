"""Some mounts have no locks. That is logged, and the commit goes on without one."""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from crooked import CrookedPlugin
from locking import LockingCommitter, locked

from laketier.registry import hookimpl

CAUGHT_BY = "test_locks.py::test_a_lock_of_a_round_is_refused"
SAYS = "and the round went on without it; another driver of the epoch came before step"


class LooseCommitter(LockingCommitter):
    @contextmanager
    def lock(self) -> Iterator[None]:
        with open(self.table.location / "_lock", "a", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError:
                logging.getLogger(__name__).warning("this file system has no locks")
            yield


@hookimpl
def laketier_format() -> CrookedPlugin:
    return locked("goes-on-without-a-lock", LooseCommitter)
