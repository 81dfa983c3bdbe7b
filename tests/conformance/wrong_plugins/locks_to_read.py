"""Readers take a lock, so that no commit comes in between: its file is made by who comes first."""

from __future__ import annotations

import fcntl
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_mount_that_can_only_be_read"
SAYS = "and who asks for rows meets EROFS from openat"


class LockingSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        with open(Path(f"{self.table.location}.readers"), "w", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return super().plan(request)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("locks-to-read", source=LockingSource)
