"""Orphans are looked for wherever a link in the table's folder leads, and deleted there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from crooked import COLLECTS, CrookedPlugin, Sweeper

from laketier import spi
from laketier.registry import hookimpl


class WanderingSweeper(Sweeper):
    def files(self) -> list[spi.OrphanFile]:
        paths = [Path(folder, name) for folder, _, names in os.walk(self.home, followlinks=True) for name in names]
        here = [(str(path.relative_to(self.home)), path.stat()) for path in paths]
        return [spi.OrphanFile(path, status.st_size, int(status.st_mtime * 1000)) for path, status in here]

    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        for file in orphans:
            Path(self.home, file.path).unlink(missing_ok=True)
        return orphans


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("follows-links", COLLECTS, maintenance=WanderingSweeper)
