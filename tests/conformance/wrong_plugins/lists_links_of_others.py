"""A link that somebody put into the table's folder, under a name as of a staged file, is told as an orphan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_collection_follows_no_link_in_the_table"
SAYS = "links of others in the table that are told as orphans"


class LinkLister(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        here = Path(self.table.location)
        links = [
            spi.OrphanFile(str(path.relative_to(here)), status.st_size, int(status.st_mtime * 1000))
            for path in here.rglob("*.feather")
            if path.is_symlink() and int((status := path.stat()).st_mtime * 1000) < modified_before
        ]
        return [*super().orphans(modified_before), *links]


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-links-of-others", maintenance=LinkLister)
