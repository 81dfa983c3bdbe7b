"""A file of a partitioned table holds the columns that are not in its folder's name. One that holds none is empty."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from local import reading

from laketier import spi
from laketier.registry import hookimpl
from laketier_localfile.source import LocalFileSource

CAUGHT_BY = "test_layout.py::test_a_layout_by_odd_columns"
SAYS = "rows of a table with the layout"


class ReadingSource(LocalFileSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if {name for name, _ in split.partition} < set(schema.names):
            yield from super().read(split, schema)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return reading("reads-no-files-without-columns", ReadingSource)
