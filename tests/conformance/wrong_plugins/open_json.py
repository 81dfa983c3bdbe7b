"""Local files of plain JSON that stay open over epochs."""

from __future__ import annotations

from typing import Any

from local import tiering

from laketier import kit, spi
from laketier_localfile.conformance import Harness
from laketier_localfile.folding import FoldingTable
from laketier_localfile.place import place_of
from laketier_localfile.storage import LocalFileTieringFactory


class OpenJson(Harness):
    """A wrong plugin's harness derives from it."""

    option_sets = ({"file-format": "json", "open-files": "true"},)


def committing(named: str, committer: type[kit.ManifestCommitter]) -> spi.LakeStoragePlugin:
    """The plugin with another committer."""

    class Factory(LocalFileTieringFactory):
        def create_committer(self, context: spi.CommitterInitContext) -> spi.LakeCommitter[Any]:
            return committer(FoldingTable(place_of(self.table.location, self.options.storage), self.options), context)

    return tiering(named, Factory)
