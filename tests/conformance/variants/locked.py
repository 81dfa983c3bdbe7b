"""A format whose tables have an empty lock file: who commits makes it, and readers only take a lock of it."""

from __future__ import annotations

import fcntl
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl


class LockedCommitter(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        Path(f"{self.table.location}.lock").touch()
        return super().publish(state, results, watermark)


class LockedSource(Source):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        with suppress(FileNotFoundError), open(f"{self.table.location}.lock", "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return super().plan(request)
        return super().plan(request)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("locked", committer=LockedCommitter, source=LockedSource)
