"""A task writes into a scratch folder, which goes when the task's process ends, whatever happened. A child that was
forked from it ends, too."""

from __future__ import annotations

import tempfile
from pathlib import Path

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.kit.durable import fsync_directory, fsync_file
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_a_process_that_forks"
SAYS = (
    "the child did nothing and ended; the task was completed then, and its result published: expected no error, found"
)


class ScratchWriter(Writer):
    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        super().__init__(table, attempt)
        self._scratch = tempfile.TemporaryDirectory(dir=self._path.parent, prefix=".scratch-")
        self._final, self._path = self._path, Path(self._scratch.name, self._path.name)

    def complete(self) -> spi.WriteResult:
        if self._file is None:
            return super().complete()
        self._file.close()
        fsync_file(self._path)
        self._path.rename(self._final)
        fsync_directory(self._final.parent)
        self._scratch.cleanup()
        file = spi.StagedFile(self._final.name, self._rows, self._final.stat().st_size)
        return spi.WriteResult.of(self._table, self._attempt, (file,))

    def abort(self) -> None:
        super().abort()
        self._scratch.cleanup()
        self._final.unlink(missing_ok=True)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tidies-up-in-each-child", writer=ScratchWriter)
