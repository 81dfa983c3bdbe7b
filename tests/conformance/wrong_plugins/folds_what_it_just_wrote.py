"""A file of rows that were folded is one that its commit added: it has no level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from local import folding

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl
from laketier_localfile.folding import FoldingTable

CAUGHT_BY = "test_depth.py::test_many_small_files_are_read_once"
SAYS = "the changes of epoch 1: expected 1 rows, found 106"


class Folding(FoldingTable):
    def named(self, number: int, added: Sequence[FileEntry]) -> Sequence[FileEntry]:
        return super().named(number, [replace(entry, level=0) for entry in added])


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return folding("folds-what-it-just-wrote", Folding)
