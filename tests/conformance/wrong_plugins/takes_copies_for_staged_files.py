"""A file whose name begins with an attempt's is what that attempt staged: also the copy that somebody made of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_orphans.py::test_what_is_a_users_stays"
SAYS = "copies of a staged file that are listed as staged by an attempt"


class Maintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        found = {file.path: file for file in super().orphans(modified_before)}
        for path in self.table.location.glob("*.feather"):
            begins, status = re.match("[0-9a-f]{32}", path.name), path.stat()
            if begins and status.st_mtime * 1000 < modified_before and path.stem != begins[0]:
                at = int(status.st_mtime * 1000)
                found[path.name] = spi.OrphanFile(path.name, status.st_size, at, attempt=begins[0])
        return list(found.values())


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-copies-for-staged-files", maintenance=Maintenance)
