"""Rows go through a data frame of pandas, in which no number is NaN."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[float64]"
SAYS = "come back as written"


class PandasWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [
            pc.if_else(pc.is_nan(c), pa.scalar(None, c.type), c) if pa.types.is_float64(c.type) else c
            for c in batch.columns
        ]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-nan-for-null", writer=PandasWriter)
