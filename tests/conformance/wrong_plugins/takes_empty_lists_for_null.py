"""A list without values is written as no list, as some readers of Parquet had it."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_nested[list-of-int]"
SAYS = "come back as written"


class EmptyWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [
            pa.array([v or None for v in c.to_pylist()], c.type) if pa.types.is_list(c.type) else c
            for c in batch.columns
        ]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-empty-lists-for-null", writer=EmptyWriter)
