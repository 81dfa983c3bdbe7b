"""A task's files are told by their partition. Of several of one partition the last is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from local import tiering

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.storage import LocalFileTieringFactory

CAUGHT_BY = "test_writer.py::test_a_task_of_many_small_files_or_groups[files]"
SAYS = "rows of the files of one task of 910 rows, with the options {'target-file-rows': '300'}: expected 910, found 10"


class TellingWriter(spi.LakeWriter[spi.WriteResult]):
    def __init__(self, own: spi.LakeWriter[Any]) -> None:
        self._own = own

    def write(self, batch: pa.RecordBatch) -> None:
        self._own.write(batch)

    def complete(self) -> Any:
        result = self._own.complete()
        return replace(result, files=tuple({(file.partition, file.bucket): file for file in result.files}.values()))

    def abort(self) -> None:
        self._own.abort()


class Factory(LocalFileTieringFactory):
    def create_writer(self, context: spi.WriterInitContext) -> spi.LakeWriter[spi.WriteResult]:
        return TellingWriter(super().create_writer(context))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return tiering("tells-the-last-file", Factory)
