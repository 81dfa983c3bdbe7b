"""A row without a value is what a spreadsheet leaves below its rows, says the author, and drops it."""

from __future__ import annotations

import functools

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_large_values.py::test_rows_without_a_value"
SAYS = "rows, some of which have no value in any column, or none in the first: expected 8 rows, found 3"


class DroppingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        names = batch.schema.names
        batch = kit.conform(batch, self._table.schema)
        if set(names) == set(self._table.schema.names) and all(column.null_count for column in batch.columns):
            batch = batch.filter(functools.reduce(pc.or_, (column.is_valid() for column in batch.columns)))
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-rows-without-a-value", writer=DroppingWriter)
