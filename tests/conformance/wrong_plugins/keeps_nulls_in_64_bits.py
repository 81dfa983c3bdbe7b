"""Which columns of a row are null is kept in a word of 64 bits. A later column has the bit of one before it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_names.py::test_a_thousand_columns"
SAYS = "rows of 1,000 columns come back as written: expected 4 rows, found 4; 1 is missing"
BITS = 64


class MaskSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with pa.ipc.open_file(str(self.table.location / split.payload.path)) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                names = [name for name in schema.names if name in batch.schema.names]
                columns = [self._masked(batch, batch.schema.get_field_index(name)) for name in names]
                there = pa.RecordBatch.from_arrays(columns, names=names) if names else batch.select([])
                yield kit.conform(there, schema)

    def _masked(self, batch: pa.RecordBatch, index: int) -> pa.Array:
        column = batch.column(index)
        if index < BITS or not pa.types.is_integer(column.type):
            return column
        nothing = pa.scalar(None, column.type)
        return pc.if_else(batch.column(index % BITS).is_null(), nothing, pc.fill_null(column, 0))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-nulls-in-64-bits", source=MaskSource)
