"""A commit is written under a temporary name of its process and its thread, and gets its number by a link. Drivers in
two containers write into each other's."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from crooked import CrookedLog, CrookedPlugin
from feather_lake.plugin import FeatherTable

from laketier.kit.durable import fsync_directory
from laketier.kit.manifests import ManifestLog
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_rival_before_each_effect"
SAYS = "a rival came before"


class ThreadsLog(CrookedLog):
    def publish(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f".commit.{os.getpid()}.{threading.get_ident()}")
        with open(temporary, "wb") as file:
            file.write(data)
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
            fsync_directory(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


class ThreadsTable(FeatherTable):
    def manifests(self) -> ManifestLog:
        return ThreadsLog.open(self.location, self.layout)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-commits-by-their-thread", table=ThreadsTable)
