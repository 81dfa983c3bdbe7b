"""A writer leaves its files open for the next epoch, also where none follows: nobody finishes them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from local import tiering
from open_json import OpenJson

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.storage import LocalFileTieringFactory

CAUGHT_BY = "test_open_files.py::test_epochs_of_one_process"
SAYS = "and no other follows: its writer left nothing in its slot"


class Endless(spi.LakeWriter[spi.WriteResult]):
    def __init__(self, own: spi.LakeWriter[Any], slot: spi.OpenFilesSlot | None) -> None:
        self._own, self._slot = own, slot or spi.OpenFilesSlot()

    def write(self, batch: pa.RecordBatch) -> None:
        self._own.write(batch)

    def complete(self) -> Any:
        ending, self._slot.ending = self._slot.ending, False
        result = self._own.complete()
        self._slot.ending = ending
        return result

    def abort(self) -> None:
        self._own.abort()


class Factory(LocalFileTieringFactory):
    def create_writer(self, context: spi.WriterInitContext) -> spi.LakeWriter[spi.WriteResult]:
        return Endless(super().create_writer(context), context.open_files)


class Harness(OpenJson):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return tiering("leaves-files-open-at-the-end", Factory)
