"""The reader below knows no columns that can't be null. Its batches are handed on as they are."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Source

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_source.py::test_all_rows_and_columns"
SAYS = "has the schema that it was asked for: expected the columns id: int64 not null, "


class NullableSource(Source):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        nullable = pa.schema([column.with_nullable(True) for column in schema])
        for batch in super().read(split, schema):
            yield batch.cast(nullable) if len(schema) else batch


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("reads-everything-as-nullable", source=NullableSource)
