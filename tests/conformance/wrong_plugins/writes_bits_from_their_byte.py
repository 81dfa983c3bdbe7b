"""Booleans are written from their buffer's first byte, and a slice may begin within one."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_slices_that_begin_within_a_byte"
SAYS = "slices that begin within a byte"


def mended(column: pa.Array) -> pa.Array:
    if not pa.types.is_boolean(column.type) or column.null_count or not column.offset % 8:
        return column
    bits = column.buffers()[1]
    return pa.Array.from_buffers(column.type, len(column), [None, bits.slice(column.offset // 8)])


class MendingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [mended(column) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("writes-bits-from-their-byte", writer=MendingWriter)
