"""A file with none of the columns that are read has nothing to read. It has rows: of nulls, where they came later."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_reshape.py::test_a_column_that_came_later_is_read_alone"
SAYS = "the only column, which came after all rows: expected [None, None, None, None, None], found []"


class SavingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with pa.ipc.open_file(str(self.table.location / split.payload.path)) as file:
            there = set(file.schema.names)
        if not schema.names or there.intersection(schema.names):
            yield from super().read(split, schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("passes-over-files-without-the-columns", source=SavingSource)
