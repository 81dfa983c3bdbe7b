"""Orphans are looked for wherever a link in the table's folder leads, and deleted there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_collection_follows_no_link_in_the_table"
SAYS = "files that changed around the table when orphans were collected, with links in the table"


class WanderingSweeper(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        manifests = self.table.manifests()
        published = self.table.published(manifests, manifests.head()[0])
        return [f for f in self.files() if f.path not in published and f.modified_at < modified_before]

    def files(self) -> Iterator[spi.OrphanFile]:
        here = self.table.location
        for folder, _, names in os.walk(here, followlinks=True):
            for path in (Path(folder, name) for name in names if name.endswith(".feather")):
                status = path.stat()
                yield spi.OrphanFile(str(path.relative_to(here)), status.st_size, int(status.st_mtime * 1000))

    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        for file in orphans:
            Path(self.table.location, file.path).unlink(missing_ok=True)
        return orphans


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("follows-links", maintenance=WanderingSweeper)
