"""One file is made by one process alone, so whoever made it commits. That of a process that died is deleted by hand."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from pathlib import Path

from crooked import CrookedPlugin
from locking import LockingCommitter, locked

from laketier.registry import hookimpl

CAUGHT_BY = "test_locks.py::test_a_lock_is_taken_over[deleted]"
SAYS = "its lock file was deleted, and another driver of the epoch came before step"


def taken(path: Path) -> bool:
    with suppress(FileExistsError):
        path.touch(exist_ok=False)
        return True
    return False


class FileCommitter(LockingCommitter):
    def lock(self) -> AbstractContextManager[None]:
        return self.holding_file(taken)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return locked("trusts-a-lock-file", FileCommitter)
