"""Small files that are written as one are those of before the commit, also where it replaces some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from local import tiering

from laketier import kit, spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl
from laketier_localfile.folding import FoldingTable
from laketier_localfile.place import place_of
from laketier_localfile.storage import LocalFileTieringFactory

CAUGHT_BY = "test_upsert.py::test_many_small_files_of_keys"
SAYS = "a key is there twice"


class FoldingCommitter(kit.ManifestCommitter):
    def _fold(self, state: kit.ManifestState, added: Sequence[FileEntry], removed: Sequence[str]) -> Any:
        return super()._fold(state, added, ())


class Factory(LocalFileTieringFactory):
    def create_committer(self, context: spi.CommitterInitContext) -> spi.LakeCommitter[spi.WriteResult]:
        table = FoldingTable(place_of(self.table.location, self.options.storage), self.options)
        return FoldingCommitter(table, context)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return tiering("folds-what-it-replaces", Factory)
