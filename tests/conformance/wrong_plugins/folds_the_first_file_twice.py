"""Small files are written as one, of which the first is there for the last one, too."""

from __future__ import annotations

from collections.abc import Sequence

from local import folding

from laketier import kit, spi
from laketier.kit.manifests import FileEntry
from laketier.registry import hookimpl
from laketier_localfile.folding import FoldingTable

CAUGHT_BY = "test_depth.py::test_many_small_files_are_read_once"
SAYS = "leave these rows: expected 107 rows, found 107; 1"


class Folding(FoldingTable):
    def rewrite(self, state: kit.ManifestState, files: Sequence[FileEntry]) -> Sequence[spi.StagedFile]:
        same = files[0].rows == files[-1].rows
        return super().rewrite(state, [*files[:-1], files[0]] if same else files)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return folding("folds-the-first-file-twice", Folding)
