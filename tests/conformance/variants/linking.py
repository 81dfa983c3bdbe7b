"""A format that leaves a link to its manifests with each commit, and lists these links as orphans of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

LINK = ".link"


class Linking(kit.ManifestCommitter):
    def publish(
        self, state: spi.TableState, results: Sequence[spi.WriteResult], watermark: spi.Watermark | None
    ) -> spi.LakeCommitResult:
        done = super().publish(state, results, watermark)
        Path(self.table.location, f"{self.context.commit_id}{LINK}").symlink_to(self.table.layout.folder)
        return done


class Maintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        links = [(path.name, path.lstat()) for path in Path(self.table.location).glob(f"*{LINK}") if path.is_symlink()]
        older = [
            spi.OrphanFile(name, status.st_size, int(status.st_mtime * 1000), "link")
            for name, status in links
            if int(status.st_mtime * 1000) < modified_before
        ]
        return [*super().orphans(modified_before), *older]

    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        own = [file for file in orphans if file.kind == "link"]
        for file in own:
            if os.path.lexists(path := Path(self.table.location, file.path)):
                path.unlink()
        return [*own, *super().remove_orphans([file for file in orphans if file.kind != "link"])]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("linking", committer=Linking, maintenance=Maintenance)
