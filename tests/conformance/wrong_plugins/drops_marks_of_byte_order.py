"""Texts are decoded as UTF-8 that may begin with a mark of its byte order."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_text_stays_text"
SAYS = "text that looks like something else"


def mended(column: pa.Array) -> pa.Array:
    if not pa.types.is_string(column.type):
        return column
    return pa.array([None if t is None else t.removeprefix("\ufeff") for t in column.to_pylist()], column.type)


class MendingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [mended(column) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-marks-of-byte-order", writer=MendingWriter)
