"""Texts go through a library of C's, which ends them at the first NUL."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_text_of_any_length_and_script"
SAYS = "text of any length and script"


def cut(column: pa.Array) -> pa.Array:
    if not pa.types.is_string(column.type):
        return column
    return pa.array([None if v is None else v.split("\0")[0] for v in column.to_pylist()], column.type)


class CuttingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in super().read(split, schema):
            columns = [cut(column) for column in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("cuts-texts-at-nul", source=CuttingSource)
