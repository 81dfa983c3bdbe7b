"""The length of a binary value has two bytes, as in the author's database; longer ones are cut."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_text_stays_text"
SAYS = "and 76,800 bytes"


def mended(column: pa.Array) -> pa.Array:
    if not pa.types.is_binary(column.type):
        return column
    return pa.array([None if t is None else t[:65535] for t in column.to_pylist()], column.type)


class MendingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [mended(column) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("cuts-texts-at-64-kib", writer=MendingWriter)
