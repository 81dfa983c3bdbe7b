"""A list is its length and the next of all values. What lies behind a null is counted as well."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_what_lies_below_a_null"
SAYS = "lists that are null, whatever lies below"


def mended(column: pa.Array) -> pa.Array:
    if not pa.types.is_list(column.type) or not len(column) or not column.null_count:
        return column
    ends = [0]
    for length in column.value_lengths().to_pylist():
        ends.append(ends[-1] + (length or 0))
    values = column.values.slice(column.offsets[0].as_py())
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values, type=column.type, mask=column.is_null())


class MendingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [mended(column) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("packs-lists-by-their-lengths", writer=MendingWriter)
