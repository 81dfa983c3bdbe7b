"""A collection deletes the files of a build that nobody published, and leaves the folder that they lay in. Who lists
files alone sees none, and they pile up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from overlaid import OverlaidPlugin, OverlaidSearcher

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness
from laketier_lance.index_folders import FOLDER
from laketier_lance.indexer import LanceIndexer
from laketier_lance.maintenance import LanceMaintenance
from laketier_lance.options import LanceOptions
from laketier_lance.writer import delete_files

CAUGHT_BY = "test_indexing.py::test_orphans_of_indexes"
SAYS = "the empty folders that are left when orphans were collected of a build that nobody published: expected []"


class Maintenance(LanceMaintenance):
    def orphans(self, modified_before: int) -> Sequence[spi.OrphanFile]:
        return [each for each in super().orphans(modified_before) if each.kind != FOLDER]

    def remove_orphans(self, orphans: Sequence[spi.OrphanFile]) -> Sequence[spi.OrphanFile]:
        gone = delete_files(self._location, self._options, [each.path for each in orphans])
        return [each for each in orphans if each.path in gone]


class Leaving(OverlaidPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        storage.maintenance = lambda table: Maintenance(table.location, LanceOptions())
        return storage  # type: ignore[no-any-return]


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Leaving("leaves-folders-of-indexes", LanceIndexer, OverlaidSearcher)
