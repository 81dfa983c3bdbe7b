"""A column of a file that has another type than the table's is cast to that: numbers become texts that nobody wrote."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_torn.py::test_a_file_has_columns_of_other_types"
SAYS = "expected a refusal, and it was read"


class CastingSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        path = str(self.table.location / self.table.layout.data_path(split.payload.path, where="a split"))
        with kit.naming_damage(path), pa.ipc.open_file(path) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                there = [field for field in schema if field.name in batch.schema.names]
                columns = [batch.column(field.name).cast(field.type) for field in there]
                yield kit.conform(pa.RecordBatch.from_arrays(columns, schema=pa.schema(there)), schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("casts-what-a-file-has", source=CastingSource)
