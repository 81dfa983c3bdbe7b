"""Values of partitions are not in its files. A scan fills them in, and a reader of changes was written before that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
from richer import FedFile, RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_layout_changes.py::test_appended_rows_of_partitions[date]"
SAYS = "rows of a log of partitions by date"


class FillingSource(RicherSource):
    def arrived_split(
        self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema
    ) -> spi.LakeSplit:
        split = super().arrived_split(index, entry, snapshot, wanted)
        return replace(split, payload=FedFile(entry.path, "log"))

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if split.payload.kind != "log":
            yield from super().read(split, schema)
            return
        lacking = {name for name, _ in split.partition}
        for batch in super().read(replace(split, payload=FedFile(split.payload.path)), schema):
            columns = [
                pa.nulls(len(batch), field.type) if field.name in lacking else batch.column(field.name)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema) if len(schema) else batch


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("follows-partitions-as-nulls", source=FillingSource)
