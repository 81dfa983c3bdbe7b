"""Staging: data files below ``__in_progress``, durable before they are handed to the committer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from laketier.kit.data_file import ClosedFile, OpenFile
from laketier.kit.failpoints import failpoint
from laketier.kit.local_store import store_of
from laketier.kit.manifests import ManifestLog
from laketier.kit.rolling import RollingWriter
from laketier.spi import (
    BucketAssigner,
    ConfigError,
    LakeWriter,
    StagedFile,
    TableInfo,
    TableNotFound,
    WriteResult,
    WriterInitContext,
)
from laketier_localfile.claims import claim
from laketier_localfile.file_formats.known import of_table
from laketier_localfile.layout import IN_PROGRESS, LAYOUT, base_name, staged_path
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.outside import file_schema
from laketier_localfile.partitioning import Partitioning
from laketier_localfile.place import place_of
from laketier_localfile.staging import staging_at


class LocalFileWriter(LakeWriter[WriteResult]):
    """Stages the rows of one task attempt. Raises `ConfigError` when it is made on a host that does not see the
    driver's warehouse."""

    def __init__(
        self,
        table: TableInfo,
        options: LocalFileOptions,
        assigner: BucketAssigner | None,
        context: WriterInitContext,
    ) -> None:
        self._table = table
        self._store = store_of(place_of(table.location, options.storage))
        self._staging = staging_at(self._store)
        self._context = context
        self._odd = options.odd_partition_values
        self._names = options.file_names
        self._partitioning = Partitioning.of(table.descriptor)
        self._file_schema = file_schema(table.descriptor)
        self._assigner = assigner
        self._made: dict[str, tuple[tuple[tuple[str, str | None], ...], int | None]] = {}
        self._refuse_other_warehouse()
        self._format = of_table(table.descriptor.properties, where=table.location)
        self._suffix = self._format.suffix(options)
        self._writer = RollingWriter(
            table.schema,
            self._create,
            self._opener(options),
            _bounded(options, self._format.most_bytes),
            block_rows=options.row_group_rows,
            block_bytes=options.row_group_bytes,
            keys=self._keys if self._partitioning.fields or assigner else None,
            file_schema=self._file_schema,
            on_closed=self._closed,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write(batch)

    def complete(self) -> WriteResult:
        files = tuple(self._staged(file) for file in self._writer.close())
        if files:
            self._staging.complete()
        failpoint("stage.after_fsync")
        return WriteResult.of(self._table, self._context.attempt, files)

    def abort(self) -> None:
        self._staging.give_up()
        self._writer.abandon()
        for path in self._writer.paths:
            self._staging.delete(path)

    def _opener(self, options: LocalFileOptions) -> OpenFile:
        return self._format.opener(options)

    def _keys(self, table: pa.Table) -> Sequence[pa.ChunkedArray]:
        keys = self._partitioning.keys(table)
        if self._assigner is not None:
            buckets = [self._assigner.assign(batch) for batch in table.to_batches()]
            keys.append(pa.chunked_array(buckets, type=pa.int32()))
        return keys

    def _create(self, values: tuple[Any, ...]) -> tuple[str, pa.NativeFile]:
        partition = self._partitioning.texts(values[: len(self._partitioning.fields)])
        # What can't be a folder's name is refused here, where a bad row still costs nothing but its task.
        self._partitioning.folders(partition, self._odd)
        bucket = values[-1] if self._assigner is not None else None
        name = base_name(
            self._context.split_index, bucket, self._context.attempt, len(self._made), self._suffix, self._names
        )
        path, stream = self._staging.create(staged_path(name))
        self._made[path] = (partition, bucket)
        return path, stream

    def _closed(self, path: str) -> None:
        self._staging.closed(path)

    def _staged(self, file: ClosedFile) -> StagedFile:
        partition, bucket = self._made[file.path]
        with self._staging.open(file.path) as data:
            described = self._format.describe(file, self._file_schema, data)
            seal = self._format.seal(data, file.bytes)
        return StagedFile(
            path=f"{IN_PROGRESS}/{file.path.rpartition('/')[2]}",
            rows=file.rows,
            bytes=file.bytes,
            partition=partition,
            bucket=bucket,
            payload=claim(self._format.name, described, seal),
        )

    def _refuse_other_warehouse(self) -> None:
        try:
            found = ManifestLog.open(self._store, LAYOUT).table_uuid
        except TableNotFound:
            found = None
        if found != self._table.table_uuid:
            raise ConfigError(
                "this host does not see the driver's warehouse" if found is None else "the table is another one now",
                where=self._store.root,
                why="the folder is not shared between driver and executors"
                if found is None
                else f"it was recreated, or this host has a table of its own there ({found})",
                fix="Put lake.warehouse on a file system that all hosts mount under the same path, or run Spark on "
                "one host with master local[N].",
            )


def _bounded(options: LocalFileOptions, most: int | None) -> LocalFileOptions:
    if most is None or options.target_file_bytes <= most:
        return options
    return replace(options, target_file_bytes=most)
