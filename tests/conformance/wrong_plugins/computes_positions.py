"""Readers compute a column `_pos`, the place of each row in its file, for deletes to come. A table may have a column of
that name itself."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_columns_with_odd_names"
SAYS = "columns with odd names come back as written"

POSITION = "_pos"


class CountingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in super().read(split, schema):
            places = pa.array(range(start, start + len(batch)), pa.int64())
            start += len(batch)
            if POSITION in schema.names:
                index = schema.get_field_index(POSITION)
                batch = batch.set_column(index, schema.field(index), places.cast(schema.field(index).type))
            yield batch


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("computes-positions", source=CountingSource)
