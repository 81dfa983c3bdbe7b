"""A commit is written under a temporary name that its process has once. Two streams of one process write each other's,
and so do two containers, whose processes have the same numbers."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.durable import fsync_directory
from laketier.kit.manifests import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_races.py::test_streams_of_one_process"
SAYS = "to one table"
SECONDS = 0.2

TOGETHER = threading.Barrier(2)
"""Of two threads that commit at a time each writes before the other one goes on. One that is alone waits a while."""


class OneNameLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        with open(temporary, "wb") as file:
            file.write(data)
            os.fsync(file.fileno())
        if threading.active_count() > 2:
            with suppress(threading.BrokenBarrierError):
                TOGETHER.wait(SECONDS)
            TOGETHER.reset()
        try:
            os.link(temporary, path)
            fsync_directory(path.parent)
        except FileExistsError:
            if path.read_bytes() != data:
                raise
        finally:
            temporary.unlink(missing_ok=True)


class OneNameTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return OneNameLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-commits-by-their-process", table=OneNameTable)
