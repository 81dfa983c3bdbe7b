"""Stages Parquet files below the table's folder. Runs on executors; nothing here touches the Delta log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.bucketing import assigner_for
from laketier.kit import conform
from laketier.kit.durable import fsync_directory, fsync_file
from laketier.kit.file_names import NameSettings
from laketier.kit.local_folder import LocalFolder
from laketier.kit.looks import is_folder
from laketier.kit.parquet import ClosedFile, RollingParquetWriter
from laketier.kit.partition import OddPartitionValues
from laketier.kit.staged import remove
from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import LakeWriter, StagedFile, TableError, TableInfo, WriteResult
from laketier_delta.char_limits import check_lengths
from laketier_delta.layout import file_path, partition_values, stem_of
from laketier_delta.location import LOG, Location
from laketier_delta.nullability import relaxed
from laketier_delta.options import DeltaOptions
from laketier_delta.partitions import empty_as_null
from laketier_delta.protocol import INDEXED_COLUMNS, integer_property
from laketier_delta.stats import DEFAULT_INDEXED_COLUMNS, FileStatistics

STATS = "stats"
"""The key of a staged file's payload that holds the statistics of its add action."""


class DeltaWriter(LakeWriter[WriteResult]):
    """One task attempt's rows: partition columns stay out of the files, statistics travel with the result."""

    def __init__(
        self, table: TableInfo, location: Location, options: DeltaOptions, attempt: str, limits: Mapping[str, str]
    ) -> None:
        self._table = table
        self._limits = limits
        self._odd = options.odd_partition_values
        self._names: NameSettings = options
        self._location = location
        self._attempt = attempt
        self._filesystem = location.filesystem
        self._partition_columns = [field.column for field in table.descriptor.partition_by]
        self._assigner = assigner_for(table.descriptor) if table.descriptor.buckets else None
        self._buckets: dict[str, int | None] = {}
        file_schema = relaxed(table.schema)
        if self._partition_columns:
            file_schema = pa.schema([field for field in file_schema if field.name not in self._partition_columns])
        self._statistics = _statistics(table, file_schema)
        self._floats = [field.name for field in file_schema if pt.is_floating(field.type)]
        self._with_nan: set[str] = set()
        self._check_warehouse()
        split = bool(self._partition_columns) or self._assigner is not None
        self._files = RollingParquetWriter(
            table.schema,
            self._create,
            options,
            keys=self._keys if split else None,
            file_schema=None if file_schema is table.schema else file_schema,
            on_closed=self._flush,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        batch = conform(batch, self._table.schema)
        check_lengths(batch, self._limits)
        if self._odd is OddPartitionValues.ACCEPT:
            batch = empty_as_null(batch, self._partition_columns)
        self._watch_for_nan(batch)
        self._files.write(batch)

    def complete(self) -> WriteResult:
        files = tuple(self._staged(file) for file in self._files.close())
        return WriteResult.of(self._table, self._attempt, files)

    def abort(self) -> None:
        self._files.abandon()
        remove(self._location.folder, self._files.paths)

    def _create(self, key: tuple[Any, ...]) -> tuple[str, pa.NativeFile]:
        values, bucket = (key[:-1], key[-1]) if self._assigner else (key, None)
        stem = stem_of(self._table.schema_fingerprint, self._attempt, len(self._files.paths), self._names.file_names)
        path = file_path(self._partition_columns, values, stem, bucket, self._odd, self._names)
        self._buckets[path] = bucket
        target = f"{self._location.root}/{path}"
        if self._location.is_local:
            self._location.refuse_links(path)
            self._check_warehouse()
            if folders := path.rpartition("/")[0]:
                LocalFolder(Path(self._location.uri)).make_folders(folders)  # never the table's own
            self._location.local(path).open("xb").close()
        return path, self._filesystem.open_output_stream(target)

    def _keys(self, table: pa.Table) -> Sequence[pa.ChunkedArray]:
        keys = [table.column(name) for name in self._partition_columns]
        if self._assigner is not None:
            chunks = [self._assigner.assign(batch) for batch in table.to_batches()]
            keys.append(pa.chunked_array(chunks, type=pa.int32()))
        return keys

    def _flush(self, path: str) -> None:
        if self._location.is_local:
            fsync_file(self._location.local(path))
            fsync_directory(self._location.local(path).parent)

    def _staged(self, file: ClosedFile) -> StagedFile:
        values = file.partition[:-1] if self._assigner else file.partition
        return StagedFile(
            path=file.path,
            rows=file.rows,
            bytes=file.bytes,
            partition=partition_values(self._partition_columns, values),
            bucket=self._buckets[file.path],
            payload={STATS: self._statistics.of(file.footer, self._with_nan)},
        )

    def _watch_for_nan(self, batch: pa.RecordBatch) -> None:
        for name in self._floats:
            if name not in self._with_nan and pc.any(pc.is_nan(batch.column(name))).as_py():
                self._with_nan.add(name)

    def _check_warehouse(self) -> None:
        if not self._location.is_local:
            return
        with naming_storage_errors("looking for the table"):
            is_seen = is_folder(self._location.local(LOG))
        if not is_seen:
            raise TableError(
                "this executor does not see the table that the driver opened",
                where=self._location.uri,
                why="the warehouse is a path on the driver's own disk, or the table was dropped",
                fix="Use a warehouse that all machines mount, or s3://.",
            )


def _statistics(table: TableInfo, file_schema: pa.Schema) -> FileStatistics:
    properties = table.descriptor.properties
    named = properties.get("delta.dataSkippingStatsColumns")
    count = integer_property(properties, INDEXED_COLUMNS, DEFAULT_INDEXED_COLUMNS)
    columns = None if named is None else {name.strip().strip("`") for name in named.split(",")}
    return FileStatistics(file_schema, count, columns)
