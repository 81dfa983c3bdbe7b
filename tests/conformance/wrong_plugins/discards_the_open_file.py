"""A result is discarded that appended to a file which an earlier epoch began: the file goes, with the rows of then."""

from __future__ import annotations

from collections.abc import Sequence

from open_json import OpenJson, committing

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_open_files.py::test_an_attempt_comes_to_nothing"
SAYS = "was staged, and discarded"


class Committer(kit.ManifestCommitter):
    def discard(self, results: Sequence[spi.WriteResult]) -> None:
        for result in results:
            for file in result.files:
                self.table.store.delete(file.path)


class Harness(OpenJson):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return committing("discards-the-open-file", Committer)
