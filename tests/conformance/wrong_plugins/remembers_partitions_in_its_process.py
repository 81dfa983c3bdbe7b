"""Partition columns are not stored in the files, as with Hive, and what the plan knew of them stays with the process
that planned: a task in another one reads null."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from crooked import CrookedPlugin
from richer import RicherSource, richer

from laketier import spi
from laketier.kit.manifests import FileEntry, ManifestSnapshot
from laketier.registry import hookimpl

CAUGHT_BY = "test_spark.py::test_epochs_and_their_replay[spark-dataframe]"
SAYS = "odd values, as a reader on Spark has them"

_PARTITIONS: dict[str, dict[str, str | None]] = {}


class RememberingSource(RicherSource):
    def split(self, index: int, entry: FileEntry, snapshot: ManifestSnapshot, wanted: pa.Schema) -> spi.LakeSplit:
        _PARTITIONS[entry.path] = dict(entry.partition)
        return super().split(index, entry, snapshot, wanted)

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        values = _PARTITIONS.get(split.payload.path, {})
        parted = {name for name, _ in split.partition}
        for batch in super().read(split, schema):
            for place, field in enumerate(schema):
                if field.name in parted:
                    column = pa.array([values.get(field.name)] * len(batch), field.type)
                    batch = batch.set_column(place, field, column)
            yield batch


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("remembers-partitions-in-its-process", source=RememberingSource)
