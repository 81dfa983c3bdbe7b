"""A commit is written under a temporary name that its process has once. Two streams of one process write each other's,
and so do two containers, whose processes have the same numbers."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.durable import fsync_directory
from laketier.kit.manifests import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_races.py::test_streams_of_one_process"
SAYS = "to one table"
SHARED = "shared"
"""The table that several threads of the test write to: beside a thread of another one nobody comes."""
SECONDS = 60
"""Nobody waits as long: each of the threads commits."""


class Steps:
    """The first two threads that commit both write before one of them goes on. All others come later."""

    def __init__(self) -> None:
        self._comers, self._done, self._changed = count(), 0, threading.Condition()

    def of_the_next(self) -> tuple[int, int]:
        """Where a commit is written, and where it gets its number."""
        return {0: (0, 2), 1: (1, 3)}.get(next(self._comers), (4, 4))

    @contextmanager
    def at(self, step: int) -> Iterator[None]:
        """Once all steps before are done."""
        with self._changed:
            self._changed.wait_for(lambda: self._done >= step, SECONDS)
        try:
            yield
        finally:
            with self._changed:
                self._done += 1
                self._changed.notify_all()


STEPS = Steps()


class OneNameLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        if SHARED not in path.parts or threading.current_thread() is threading.main_thread():
            self.write(path, data)
            self.number(path, data)
            return
        written, numbered = STEPS.of_the_next()
        with STEPS.at(written):
            self.write(path, data)
        with STEPS.at(numbered):
            self.number(path, data)

    def write(self, path: Path, data: bytes) -> None:
        with open(_temporary(path), "wb") as file:
            file.write(data)
            os.fsync(file.fileno())

    def number(self, path: Path, data: bytes) -> None:
        try:
            os.link(_temporary(path), path)
            fsync_directory(path.parent)
        except FileExistsError:
            if path.read_bytes() != data:
                raise
        finally:
            _temporary(path).unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


class OneNameTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return OneNameLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-commits-by-their-process", table=OneNameTable)
