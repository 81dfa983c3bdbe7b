"""Feather files in a `laketier.kit.ManifestTable`: the author's part is a table of types, a writer and a reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from laketier import kit, spi
from laketier.registry import hookimpl

ABILITIES = (
    "overwrite", "upsert", "add-column", "widen-type", "drop-table", "time-travel", "time-travel-by-timestamp",
    "history", "incremental-read", "nested-types", "vectors", "orphan-collection",
    "power-cut", "set-property",
)  # fmt: skip
FEATURES = {
    feature: spi.FULL if feature.value in ABILITIES else spi.unsupported("the format is kept small")
    for feature in spi.Feature
}
NAMES = kit.AttemptNames(".feather")


class FeatherTable(kit.ManifestTable):
    """Arrow's own file format holds all of Arrow's types."""

    layout: ClassVar = kit.ManifestLayout("feather", "_feather_manifests", NAMES.attempt_of)
    features: ClassVar = FEATURES

    @classmethod
    def check_types(cls, schema: pa.Schema) -> None:
        pass


class Writer(kit.OneFileWriter):
    """One file for one task attempt, named after it."""

    names: ClassVar = NAMES

    def new_file(self, path: Path, schema: pa.Schema) -> kit.OpenFile:
        return pa.ipc.new_file(str(path), schema)


class Source(kit.ManifestSource):
    """A split is a file. Filters and limits are left to the reader."""

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        path = self.table.location / self.table.layout.data_path(split.payload.path, where="a split")
        with kit.naming_damage(str(path)), pa.ipc.open_file(str(path)) as file:
            for batch in map(file.get_batch, range(file.num_record_batches)):
                yield kit.conform(batch.select([n for n in schema.names if n in batch.schema.names]), schema)


class FeatherPlugin(kit.ManifestPlugin):
    """The format."""

    identifier, spi_version, features = "feather", 3, FEATURES
    table_type, source_type, writer_type = FeatherTable, Source, Writer


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return FeatherPlugin()
