"""Vortex files in a `laketier.kit.ManifestTable`: a table of types, a writer that rolls files, a reader of columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.types as pt

from laketier import kit, spi
from laketier.kit import durable
from laketier.kit.library_errors import errors_and_panics, refused_by_the_system
from laketier.registry import hookimpl

ABILITIES = (
    "overwrite", "upsert", "add-column", "widen-type", "drop-table", "time-travel", "time-travel-by-timestamp",
    "history", "incremental-read", "limit-pushdown", "nested-types", "vectors", "orphan-collection",
)  # fmt: skip
FEATURES = {
    feature: spi.FULL if feature.value in ABILITIES else spi.unsupported("Vortex tables are kept small so far")
    for feature in spi.Feature
}
BYTES_PER_FILE = 128 << 20
_NAME = re.compile(r"([0-9a-f]{32})-[0-9]+\.vortex")
_NOT_HELD = (pt.is_duration, pt.is_fixed_size_binary, pt.is_interval)


def attempt_of(path: str) -> str | None:
    match = _NAME.fullmatch(path)
    return match[1] if match else None


def _holds(kind: pa.DataType) -> bool:
    inside = [kind.field(i).type for i in range(kind.num_fields)]
    return not any(test(kind) for test in _NOT_HELD) and all(map(_holds, inside))


class VortexTable(kit.ManifestTable):
    """Vortex holds most of Arrow's types, and gives them back as the reader asks for them."""

    layout: ClassVar = kit.ManifestLayout("vortex", "_vortex_manifests", attempt_of)
    features: ClassVar = FEATURES

    @classmethod
    def check_types(cls, schema: pa.Schema) -> None:
        for field in schema:
            if not _holds(field.type):
                raise spi.UnsupportedType(
                    f"Vortex has no type for column {field.name!r}, which is {field.type}",
                    fix="Cast it in the query: a duration to int64, binary of a fixed size to binary.",
                )


class Writer(spi.LakeWriter[spi.WriteResult]):
    """Vortex takes whole files. So rows are collected, and written when they are enough for one."""

    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        self._table, self._attempt = table, attempt
        self._folder = Path(table.location)
        self._batches: list[pa.RecordBatch] = []
        self._files: list[spi.StagedFile] = []
        self._begun: list[Path] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if len(batch := kit.conform(batch, self._table.schema)):
            self._batches.append(batch)
            if sum(each.nbytes for each in self._batches) >= BYTES_PER_FILE:
                self._roll()

    def _roll(self) -> None:
        import vortex

        path = self._folder / f"{self._attempt}-{len(self._begun)}.vortex"
        self._begun.append(path)
        rows = pa.Table.from_batches(self._batches, self._table.schema)
        vortex.io.write(rows, str(path))
        durable.fsync_file(path)
        self._files.append(spi.StagedFile(path.name, len(rows), path.stat().st_size))
        self._batches.clear()

    def complete(self) -> spi.WriteResult:
        if self._batches:
            self._roll()
        if self._files:
            durable.fsync_directory(self._folder)
        return spi.WriteResult.of(self._table, self._attempt, tuple(self._files))

    def abort(self) -> None:
        for path in self._begun:
            path.unlink(missing_ok=True)


class Source(kit.ManifestSource):
    """Reads the columns that are asked for, in the types that are asked for. Filters are left to the reader."""

    def read(self, split: spi.LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        import vortex

        path = self.table.location / self.table.layout.data_path(split.payload.path, where="a split")
        try:
            file = vortex.open(str(path))
            there = file.dtype.to_arrow_schema().names
            wanted = pa.schema([field for field in schema if field.name in there])
            for batch in file.to_arrow(wanted.names, schema=wanted, limit=split.limit):
                yield kit.conform(batch, schema)
        except errors_and_panics(RuntimeError, pa.ArrowException) as error:  # as it is opened, and of its batches
            why = str(error).partition("\n")[0]
            if refused_by_the_system(error):
                raise spi.StorageError("a data file could not be looked at", where=str(path), why=why) from error
            raise spi.CorruptTable("a data file can't be read", where=str(path), why=why) from error


class VortexPlugin(kit.ManifestPlugin):
    identifier, spi_version, features = "vortex", 3, FEATURES
    table_type, source_type, writer_type = VortexTable, Source, Writer


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return VortexPlugin()
