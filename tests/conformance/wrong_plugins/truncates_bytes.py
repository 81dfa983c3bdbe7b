"""A text is cut after bytes, as its buffer has them: letters of two bytes that begin alike are one partition."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
from local import tiering

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile import partitioning
from laketier_localfile.storage import LocalFileTieringFactory

CAUGHT_BY = "test_layout.py::test_a_split_has_one_value_of_a_transform[truncate-text]"
SAYS = "lie in one split, whose truncate(1, key) is told as"


def _cut(column: pa.Array, width: int) -> pa.Array:
    texts = [text if text is None else text.encode()[:width].decode("latin-1") for text in column.to_pylist()]
    return pa.array(texts, column.type)


class CuttingWriter(spi.LakeWriter[spi.WriteResult]):
    def __init__(self, own: spi.LakeWriter[spi.WriteResult]) -> None:
        self._own = own

    def write(self, batch: pa.RecordBatch) -> None:
        self._own.write(batch)

    def complete(self) -> Any:
        with patch.object(partitioning, "_truncated", _cut):
            return self._own.complete()

    def abort(self) -> None:
        self._own.abort()


class Factory(LocalFileTieringFactory):
    def create_writer(self, context: spi.WriterInitContext) -> spi.LakeWriter[spi.WriteResult]:
        return CuttingWriter(super().create_writer(context))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return tiering("truncates-bytes", Factory)
