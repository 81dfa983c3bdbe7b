"""Rows go to a scratch file that is named after the process and its number there, and get their own name when the task
is done. In a container each process is the first one."""

from __future__ import annotations

import os
from itertools import count

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.kit.durable import fsync_directory, fsync_file
from laketier.registry import hookimpl

CAUGHT_BY = "test_task_numbers.py::test_processes_of_containers_have_one_number"
SAYS = "two tasks write at once, in containers"

_NUMBERS = count()


class ScratchWriter(Writer):
    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        super().__init__(table, attempt)
        self._final = self._path
        self._path = self._path.with_name(f".scratch-{os.getpid()}-{next(_NUMBERS)}")

    def complete(self) -> spi.WriteResult:
        if self._file is None:
            return super().complete()
        self._file.close()
        fsync_file(self._path)
        self._path.rename(self._final)
        fsync_directory(self._final.parent)
        file = spi.StagedFile(self._final.name, self._rows, self._final.stat().st_size)
        return spi.WriteResult.of(self._table, self._attempt, (file,))

    def abort(self) -> None:
        super().abort()
        self._final.unlink(missing_ok=True)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("counts-scratch-files-of-its-process", writer=ScratchWriter)
