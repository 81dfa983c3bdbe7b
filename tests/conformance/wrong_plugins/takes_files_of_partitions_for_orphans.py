"""Files are known by their names in a listing, and by their paths in the table: without folders both are one. What lies
in the folder of a partition is taken for nobody's."""

from __future__ import annotations

from collections.abc import Sequence

from local import local

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout.py::test_files_of_partitions_are_known_by_their_paths"
SAYS = "rows of partitions, after orphans were collected: expected no error, found CorruptTable"


class NamedMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        root = self.table.location
        parts = {path.relative_to(root).as_posix(): path.stat() for path in root.glob("key=*/*")}
        found = {
            spi.OrphanFile(path, status.st_size, status.st_mtime_ns // 1_000_000) for path, status in parts.items()
        }
        return [*super().orphans(modified_before), *(each for each in found if each.modified_at < modified_before)]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("takes-files-of-partitions-for-orphans", NamedMaintenance)
