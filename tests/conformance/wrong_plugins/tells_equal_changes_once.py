"""The feed collects the changed rows of a file in a set, as each change is to be told once. Equal rows are one."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from richer import RicherSource, richer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_feed.py::test_equal_rows_are_told_one_by_one"
SAYS = "by the changes that its feed tells"


class SetSource(RicherSource):
    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in super().read(split, schema):
            if split.payload.kind and schema.names:
                rows = pa.Table.from_batches([batch])
                batch = rows.group_by(schema.names, use_threads=False).aggregate([]).combine_chunks().to_batches()[0]
            yield batch


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("tells-equal-changes-once", source=SetSource)
