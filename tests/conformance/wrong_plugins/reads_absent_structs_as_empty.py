"""A column that a file lacks is made of nulls, of each field one. So a struct is there, with nothing in it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_a_struct_that_came_later_is_null_in_older_rows"
SAYS = "structs of rows from before the column came, and of later ones: expected"


class FieldsSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with pa.ipc.open_file(str(self.table.location / split.payload.path)) as file:
            there = set(file.schema.names)
            absent = [field for field in schema if field.name not in there and pa.types.is_struct(field.type)]
            for batch in map(file.get_batch, range(file.num_record_batches)):
                rows = batch.select([name for name in schema.names if name in there])
                for field in absent:
                    nulls = [pa.nulls(len(batch), each.type) for each in field.type]
                    rows = rows.append_column(field, pa.StructArray.from_arrays(nulls, fields=list(field.type)))
                yield kit.conform(rows, schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("reads-absent-structs-as-empty", source=FieldsSource)
