"""Reads a Delta table at a version: splits from the log on the driver, Parquet files on executors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.many_objects import making_many_objects
from laketier.kit.parquet_reader import naming_damage, open_parquet, read_batches
from laketier.kit.partition import partition_text
from laketier.kit.scans import cut_to_limit
from laketier.spi import (
    CorruptTable,
    LakeSource,
    LakeSplit,
    ScanPlan,
    ScanRequest,
    SnapshotNotFound,
    TableInfo,
    schema_fingerprint,
)
from laketier_delta.delta_log import DeltaLog, timestamp_of
from laketier_delta.engine import arrow_schema, open_table, panics_as_errors
from laketier_delta.feed import with_change_types
from laketier_delta.history import is_another_by_now
from laketier_delta.layout import bucket_of, fingerprint_of, relative_path
from laketier_delta.location import Location
from laketier_delta.log_file import LogFile
from laketier_delta.log_version import leads_to
from laketier_delta.nullability import declared
from laketier_delta.partitions import partition_scalar
from laketier_delta.protocol import check_deletions, check_readable
from laketier_delta.pruning import FilePruner, partition_rows, struct_columns
from laketier_delta.state import DeltaTableState

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass(frozen=True)
class DeltaSource(LakeSource):
    """One table. Executors read its files with pyarrow, and never its log."""

    split_payload: ClassVar[type] = LogFile

    table: TableInfo
    location: Location

    @making_many_objects()
    def plan(self, request: ScanRequest) -> ScanPlan:
        handle = self._snapshot(request)
        check_readable(handle, self.location.uri)
        check_deletions(handle, self.location.uri)
        schema = arrow_schema(handle)
        partition_columns = list(handle.metadata().partition_columns)
        wanted = request.projected(schema, where=str(self.table.path))
        with panics_as_errors():
            files = pa.table(handle.get_add_actions())
        pruner = FilePruner(files, schema, partition_columns)
        files = files.filter(pruner.keep(request.filters))
        remaining = tuple(predicate for predicate in request.filters if not pruner.exact(predicate))
        splits = self._splits(files, schema, partition_columns, buckets=self.table.descriptor.buckets is not None)
        if request.limit is not None and not remaining:
            splits = cut_to_limit(splits, request.limit)
        return ScanPlan(
            snapshot_id=handle.version(),
            schema=wanted,
            splits=tuple(splits),
            remaining=remaining,
        )

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        file: LogFile = split.payload
        if file.fed is None:
            return self._read_file(split, schema)
        return with_change_types(file, schema, lambda rows: self._read_file(split, rows))

    def _read_file(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:

        partition = dict(split.partition)
        left = split.limit
        path = self.location.folder.full(split.payload.path)
        try:
            stream = self.location.filesystem.open_input_file(path)
        except FileNotFoundError as error:
            raise CorruptTable(
                "a data file of the snapshot is missing",
                where=path,
                why="VACUUM or another program deleted it",
                fix="Read a newer snapshot.",
            ) from error
        with stream, naming_damage(path), open_parquet(stream) as file:
            present = set(file.schema_arrow.names)
            wanted = [name for name in schema.names if name in present and name not in partition]
            for batch in read_batches(file, wanted):
                taken = batch if left is None else batch.slice(0, left)
                left = None if left is None else left - taken.num_rows
                yield _shaped(taken, schema, partition, path)
                if left == 0:
                    return

    def _snapshot(self, request: ScanRequest) -> DeltaTable:
        if request.as_of is not None:
            return self._as_of(request.as_of)
        if (seen := request.seen(DeltaTableState)) is not None:
            return seen.handle
        handle = open_table(self.location)
        return handle if request.snapshot_id is None else self._version(request.snapshot_id, handle)

    def _version(self, number: int, handle: DeltaTable) -> DeltaTable:
        if number == handle.version():
            return handle
        try:
            if number > handle.version() or number < 0:
                raise SnapshotNotFound(f"the newest version is {handle.version()}")
            return open_table(self.location, number)
        except (CorruptTable, SnapshotNotFound) as error:
            # delta-rs leaves out of a listing what the storage can't tell of.
            if isinstance(error, CorruptTable) and leads_to(self.location, number):
                raise
            raise SnapshotNotFound(
                f"version {number} can't be read",
                where=self.location.uri,
                why=error.why or error.what,
                fix=f"The newest version is {handle.version()}; older ones go with the log's retention.",
            ) from error

    def _as_of(self, milliseconds: int) -> DeltaTable:
        handle = open_table(self.location)
        log = DeltaLog(self.location.filesystem, self.location.root)
        oldest = handle.version() + 1
        for oldest, info in log.newest_first(handle.version()):
            committed_at = timestamp_of(info)
            if committed_at is not None and committed_at <= milliseconds:
                return self._version(oldest, handle)
        if oldest and is_another_by_now(self.location, log, handle.version()):
            return self._as_of(milliseconds)
        raise SnapshotNotFound(
            f"no version is as old as {_moment(milliseconds)}",
            where=self.location.uri,
            why="the table was created later, or that part of its log was cleaned up",
            fix=f"The oldest version that can be asked for is {oldest}.",
        )

    def _splits(
        self, files: pa.Table, schema: pa.Schema, partition_columns: list[str], *, buckets: bool
    ) -> list[LakeSplit]:
        values = partition_rows(files, schema, partition_columns) if partition_columns else None
        whole = _whole(files, schema, partition_columns)
        splits: list[LakeSplit] = []
        columns = (files.column(name).to_pylist() for name in ("path", "num_records", "size_bytes"))
        for index, (encoded, rows, size) in enumerate(zip(*columns, strict=True)):
            path = relative_path(encoded)
            texts = tuple((name, partition_text(value)) for name, value in values[index].items()) if values else ()
            splits.append(
                LakeSplit(
                    index=index,
                    rows=rows,
                    bytes=size,
                    bucket=bucket_of(path) if buckets else -1,
                    partition=texts,
                    plain_parquet=f"{self.location.uri}/{path}" if whole[index] else None,
                    files=(path,),
                    payload=LogFile(path),
                )
            )
        return splits


def _moment(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms since the epoch"


def _whole(files: pa.Table, schema: pa.Schema, partition_columns: list[str]) -> list[bool]:
    """Which files hold every column of ``schema``: those written with it, or with statistics of all its columns. A
    file from before a column was added does not."""
    if partition_columns:
        return [False] * files.num_rows
    fingerprint = schema_fingerprint(schema)
    named = [fingerprint_of(unquote(path)) == fingerprint for path in files.column("path").to_pylist()]
    counts = struct_columns(files, "null_count")
    if any(name not in counts or pt.is_nested(counts[name].type) for name in schema.names):
        return named
    known = [counts[name].is_valid().to_pylist() for name in schema.names]
    return [by_name or all(by_count) for by_name, *by_count in zip(named, *known, strict=True)]


def _shaped(batch: pa.RecordBatch, schema: pa.Schema, partition: dict[str, str | None], path: str) -> pa.RecordBatch:
    """The rows of a file in exactly ``schema``: partition values filled in, columns that the file lacks as nulls."""
    if not len(schema):
        return batch.select([])
    arrays = []
    for column in schema:
        if column.name in partition:
            value = partition_scalar(partition[column.name], column.type)
            arrays.append(pa.repeat(value, batch.num_rows))
        elif column.name in batch.schema.names:
            arrays.append(declared(batch.column(column.name), column.type, where=path))
        else:
            arrays.append(pa.nulls(batch.num_rows, column.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
