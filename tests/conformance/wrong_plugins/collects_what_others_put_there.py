"""A table of files that lie there owns its folder: whatever no commit names is an orphan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from local import local

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_adoption.py::test_a_collection_takes_nothing_of_others"
SAYS = "files of others that are gone or other after orphans were collected"


class OwningMaintenance(kit.ManifestMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        manifests = self.table.manifests()
        head, _ = manifests.head()
        known = {entry.path for entry in files_at(manifests, head.number)}
        root = Path(self.table.store.root)
        theirs = [
            spi.OrphanFile(str(file.relative_to(root)), file.stat().st_size, file.stat().st_mtime_ns // 1_000_000)
            for file in root.rglob("*.parquet")
            if str(file.relative_to(root)) not in known and file.stat().st_mtime_ns // 1_000_000 < modified_before
        ]
        right = super().orphans(modified_before)
        return [*right, *(file for file in theirs if file.path not in {each.path for each in right})]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return local("collects-what-others-put-there", OwningMaintenance)
