"""A format that gives staged files a second name by their content before its step, as a content-addressed store does.

Another task may have the same rows, and so the same name. So nobody deletes it but a collection: a commit that lost
leaves it there, and the next one with these rows finds it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

SUFFIX = ".object"


class ByContent(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        objects = [self._shared(file.path) for result in results for file in result.files]
        done = super().publish(state, results, watermark)
        for each in objects:
            each.unlink(missing_ok=True)
        return done

    def _shared(self, path: str) -> Path:
        staged = Path(self.table.location, path)
        named = Path(self.table.location, hashlib.sha256(staged.read_bytes()).hexdigest() + SUFFIX)
        with suppress(FileExistsError):
            os.link(staged, named)
        return named


class Maintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        objects = [(path.name, path.stat()) for path in Path(self.table.location).glob(f"*{SUFFIX}")]
        older = [
            spi.OrphanFile(name, status.st_size, status.st_mtime_ns // 1_000_000)
            for name, status in objects
            if status.st_mtime_ns // 1_000_000 < modified_before
        ]
        return [*super().orphans(modified_before), *older]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("by-content", committer=ByContent, maintenance=Maintenance)
