"""A statement of the database names a thousand columns at most, and the author fills one of them."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_large_values.py::test_a_table_of_many_columns"
SAYS = "the columns of a table of 1100 columns whose values are others than were written: expected 0 rows, found 101"


class NamingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        super().write(kit.conform(batch, self._table.schema).select(self._table.schema.names[:1000]))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("names-a-thousand-columns", writer=NamingWriter)
