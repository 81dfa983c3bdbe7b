"""A lock file tells until when it counts. Later it is taken over: by the clock of who comes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from crooked import CrookedPlugin
from locking import LockingCommitter, locked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_locks.py::test_a_lock_is_taken_over[lease-over]"
SAYS = "its lease was over, and another driver of the epoch came before step"
LEASE_SECONDS = 600.0


class LeaseCommitter(LockingCommitter):
    @contextmanager
    def lock(self) -> Iterator[None]:
        path = self.table.location / "_lock"
        for _ in range(100):
            with suppress(FileExistsError), path.open("x", encoding="utf-8") as lock:
                lock.write(str(time.time() + LEASE_SECONDS))
                break
            with suppress(FileNotFoundError, ValueError):
                if float(path.read_text(encoding="utf-8")) < time.time():
                    path.unlink()
            time.sleep(0.05)
        else:
            raise spi.Conflict("somebody else commits", where=str(path))
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return locked("trusts-the-clock-of-a-lock", LeaseCommitter)
