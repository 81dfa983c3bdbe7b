"""One file is made by one process alone, so whoever made it commits. That of a process that died is deleted by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from crooked import CrookedPlugin
from locking import LockingCommitter, locked

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_locks.py::test_a_lock_is_taken_over[deleted]"
SAYS = "its lock file was deleted, and another driver of the epoch came before step"


class FileCommitter(LockingCommitter):
    @contextmanager
    def lock(self) -> Iterator[None]:
        path = self.table.location / "_lock"
        for _ in range(100):
            with suppress(FileExistsError):
                path.touch(exist_ok=False)
                break
            time.sleep(0.05)
        else:
            raise spi.Conflict("somebody else commits", where=str(path))
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return locked("trusts-a-lock-file", FileCommitter)
