"""A file's bucket is the first of the values that its rows were parted by. With partitions that is another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from local import tiering

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.storage import LocalFileTieringFactory

CAUGHT_BY = "test_layout.py::test_buckets"
SAYS = "the buckets that rows of a split belong to"


class MixingWriter(spi.LakeWriter[spi.WriteResult]):
    def __init__(self, own: spi.LakeWriter[spi.WriteResult]) -> None:
        self._own = own

    def write(self, batch: Any) -> None:
        self._own.write(batch)

    def complete(self) -> spi.WriteResult:
        result = self._own.complete()
        files = [
            replace(file, bucket=int(file.partition[0][1] or 0)) if file.partition and file.bucket is not None else file
            for file in result.files
        ]
        return replace(result, files=tuple(files))

    def abort(self) -> None:
        self._own.abort()


class Factory(LocalFileTieringFactory):
    def create_writer(self, context: spi.WriterInitContext) -> spi.LakeWriter[spi.WriteResult]:
        return MixingWriter(super().create_writer(context))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return tiering("tells-the-first-key-for-the-bucket", Factory)
