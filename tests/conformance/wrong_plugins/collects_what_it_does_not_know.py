"""Whatever lies in the table's folder and is no part of the table is an orphan."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_is_a_users_stays"
SAYS = "files of a user that are listed as orphans"


class TidyMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        found = list(super().orphans(modified_before))
        for path in self.table.location.iterdir():
            if path.is_file() and path.suffix not in (".feather", ".json"):
                status = path.stat()
                if status.st_mtime * 1000 < modified_before:
                    found.append(spi.OrphanFile(path.name, status.st_size, int(status.st_mtime * 1000)))
        return found


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("collects-what-it-does-not-know", maintenance=TidyMaintenance)
