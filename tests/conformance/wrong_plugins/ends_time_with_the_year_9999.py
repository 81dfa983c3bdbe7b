"""Moments and days go through Python's, which end with the year 9999: later ones become the last one."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_time_does_not_end_with_pythons[days]"
SAYS = "beyond those of Python"


def mended(column: pa.Array) -> pa.Array:
    if pa.types.is_date32(column.type):
        ends, plain = (-719162, 2932896), pa.int32()
    elif pa.types.is_timestamp(column.type) and column.type.unit == "us":
        ends, plain = (-62135596800000000, 253402300799999999), pa.int64()
    else:
        return column
    within = pc.max_element_wise(
        pc.min_element_wise(column.cast(plain), ends[1], skip_nulls=False), ends[0], skip_nulls=False
    )
    return within.cast(plain).cast(column.type)


class MendingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [mended(column) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("ends-time-with-the-year-9999", writer=MendingWriter)
