"""Numbers are written from Arrow's buffers, from where these start: a slice begins somewhere in them."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_slices_and_odd_chunks"
SAYS = "rows of slices"


def from_buffers(array: pa.Array) -> pa.Array:
    if not pa.types.is_primitive(array.type):
        return array
    return pa.Array.from_buffers(array.type, len(array), array.buffers())


class SlicingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [from_buffers(column) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("writes-slices-from-their-start", writer=SlicingWriter)
