"""Batches of a process are collected in one buffer. Its executors ran one task at a time."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_discard.py::test_an_attempt_that_aborts_beside_one_that_goes_on"
SAYS = "rows of an attempt beside which another one aborted"


class SharingWriter(Writer):
    buffer: ClassVar[list[pa.RecordBatch]] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self.buffer.append(kit.conform(batch, self._table.schema))

    def complete(self) -> spi.WriteResult:
        for batch in self.buffer:
            super().write(batch)
        self.buffer.clear()
        return super().complete()

    def abort(self) -> None:
        self.buffer.clear()
        super().abort()


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("writers-share-a-buffer", writer=SharingWriter)
