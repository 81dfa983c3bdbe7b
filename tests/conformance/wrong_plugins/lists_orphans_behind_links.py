"""Links are followed where orphans are listed, and refused where they are deleted: such orphans are listed for ever."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_confinement.py::test_collection_follows_no_link_in_the_table"
SAYS = "files behind a link that are listed as the table's orphans"


class Maintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        found = {file.path: file for file in super().orphans(modified_before)}
        here = self.table.location
        for link in (each for each in here.iterdir() if each.is_symlink() and each.is_dir()):
            for folder, _, names in os.walk(link):
                for path in (Path(folder, name) for name in names if name.endswith(".feather")):
                    status, name = path.stat(), str(path.relative_to(here))
                    if (at := int(status.st_mtime * 1000)) < modified_before:
                        found[name] = spi.OrphanFile(name, status.st_size, at)
        return list(found.values())


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-orphans-behind-links", maintenance=Maintenance)
