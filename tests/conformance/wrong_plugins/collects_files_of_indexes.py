"""What no data file is, and no manifest names, is an orphan: files of an index are named by the index alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from overlaid import OverlaidPlugin, OverlaidSearcher

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.indexer import LanceIndexer
from laketier_lance.maintenance import INDEX, LanceMaintenance
from laketier_lance.options import LanceOptions

CAUGHT_BY = "test_indexing.py::test_orphans_of_indexes"
SAYS = "an index, after orphans were collected"


class Maintenance(LanceMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        found = {file.path: file for file in super().orphans(modified_before)}
        root = Path(self._location)
        for file in (each for each in root.glob("_indices/*/*") if each.is_file()):
            status, path = file.stat(), str(file.relative_to(root))
            if status.st_mtime_ns // 1_000_000 < modified_before:
                orphan = spi.OrphanFile(path, status.st_size, status.st_mtime_ns // 1_000_000, INDEX)
                found.setdefault(path, orphan)
        return list(found.values())


class Plugin(OverlaidPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        storage.maintenance = lambda table: Maintenance(table.location, LanceOptions())
        return storage  # type: ignore[no-any-return]


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin("collects-files-of-indexes", LanceIndexer, OverlaidSearcher)
