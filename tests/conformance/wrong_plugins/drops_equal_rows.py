"""Rows that are equal were delivered twice, says the author, and keeps one of them."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_rows_that_are_equal_are_all_kept"
SAYS = "rows that are equal"


class DistinctWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        rows = batch.to_pylist() if len(set(batch.schema.names)) == batch.num_columns else []
        seen = {repr(row): at for at, row in enumerate(rows)}
        if len(seen) == len(rows):
            super().write(batch)
        else:
            super().write(pa.RecordBatch.from_pylist([rows[at] for at in seen.values()], schema=batch.schema))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-equal-rows", writer=DistinctWriter)
