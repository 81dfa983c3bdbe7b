"""Plans scans on the driver, with pyiceberg; `laketier_iceberg.reader` reads the splits on executors."""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laketier.kit.scans import cut_to_limit
from laketier.spi import (
    FeatureNotSupported,
    LakeSource,
    LakeSplit,
    Passthrough,
    ScanPlan,
    ScanRequest,
    SnapshotInfo,
    SnapshotNotFound,
    TableInfo,
    VersionBounds,
    columns_of,
)
from laketier_iceberg.catalog import load
from laketier_iceberg.changes import Chain, appended
from laketier_iceberg.committer import IcebergState
from laketier_iceberg.connection import CatalogSettings
from laketier_iceberg.filters import is_exact, is_positive, to_expression
from laketier_iceberg.history import History
from laketier_iceberg.manifests import naming_damaged_manifests
from laketier_iceberg.plain import plain_files
from laketier_iceberg.resolution import Resolution
from laketier_iceberg.spec import BUCKETS_PROPERTY, FORMAT
from laketier_iceberg.types import to_arrow

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True)
class IcebergSource(LakeSource):
    """Reads one table. Picklable."""

    settings: CatalogSettings
    table: TableInfo
    io: Passthrough

    def plan(self, request: ScanRequest) -> ScanPlan:
        seen = request.seen(IcebergState)
        table = load(self.settings, self.table.path) if seen is None else seen.table
        snapshot_id, schema = _snapshot(table, request, str(self.table.path))
        where = str(self.table.path)
        wanted = request.projected(to_arrow(schema, where=where), where=where)
        if snapshot_id is None:
            return ScanPlan(snapshot_id=None, schema=wanted, splits=(), limit_done=request.limit is not None)
        with naming_damaged_manifests(table, [s for s in table.snapshots() if s.snapshot_id == snapshot_id], where):
            tasks, filtered = _tasks(table, snapshot_id, request, schema)
        remaining = _remaining(request, schema, table.metadata, tasks) if filtered else request.filters
        plain = plain_files(table.metadata, schema, [task.file for task in tasks], self.io)
        resolution = Resolution(table.metadata, schema, wanted, where)
        splits = [_split(index, task, resolution, plain) for index, task in enumerate(tasks)]
        limited = request.limit is not None and not remaining and not any(task.delete_files for task in tasks)
        if limited:
            cut = cut_to_limit(splits, request.limit or 0, key="limit")
            splits, limited = (splits, False) if cut is None else (cut, True)
        return ScanPlan(
            snapshot_id=snapshot_id, schema=wanted, splits=tuple(splits), remaining=remaining, limit_done=limited
        )

    def history(self, limit: int) -> list[SnapshotInfo]:
        ancestors = History(load(self.settings, self.table.path).metadata).ancestors()
        return [_snapshot_info(snapshot) for snapshot in itertools.islice(ancestors, limit)]

    def versions(self) -> VersionBounds:
        return Chain.of(load(self.settings, self.table.path).metadata, str(self.table.path)).bounds

    def snapshot_at(self, version: int) -> int | None:
        return Chain.of(load(self.settings, self.table.path).metadata, str(self.table.path)).at(version)

    def plan_changes(self, start: int, end: int, *, skip_changes: bool = False) -> ScanPlan:
        from pyiceberg.table import FileScanTask

        table = load(self.settings, self.table.path)
        schema = table.schema()
        where = str(self.table.path)
        wanted = to_arrow(schema, where=where)
        resolution = Resolution(table.metadata, schema, wanted, where)
        with naming_damaged_manifests(table, reversed(table.snapshots()), where):
            files = list(appended(table, start, end, where, skip_changes=skip_changes))
        plain = plain_files(table.metadata, schema, files, self.io)
        splits = (_split(index, FileScanTask(file), resolution, plain) for index, file in enumerate(files))
        return ScanPlan(snapshot_id=None, schema=wanted, splits=tuple(splits))

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        from laketier_iceberg.reader import read_split

        return read_split(split, schema, self.io)


def _snapshot_info(snapshot: Snapshot) -> SnapshotInfo:
    summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
    rows, epoch = summary.get("added-records"), summary.get("laketier.epoch")
    return SnapshotInfo(
        snapshot_id=snapshot.snapshot_id,
        committed_at=snapshot.timestamp_ms,
        operation="unknown" if snapshot.summary is None else snapshot.summary.operation.value,
        rows=None if rows is None else int(rows),
        pipeline=summary.get("laketier.pipeline"),
        epoch=None if epoch is None else int(epoch),
    )


def _snapshot(table: Table, request: ScanRequest, where: str) -> tuple[int | None, Schema]:
    """The snapshot to read, and the schema to read it with: today's for today's, its own for an older one."""
    metadata = table.metadata
    if request.snapshot_id is None and request.as_of is None:
        current = metadata.current_snapshot()
        return (None if current is None else current.snapshot_id), table.schema()
    if request.snapshot_id is not None:
        snapshot = metadata.snapshot_by_id(request.snapshot_id)
        what = f"the table has no snapshot {request.snapshot_id}"
    else:
        assert request.as_of is not None
        snapshot = table.snapshot_as_of_timestamp(request.as_of)
        what = f"the table's history does not reach back to {request.as_of}"
    if snapshot is None:
        raise SnapshotNotFound(
            what,
            where=where,
            why="it never existed, or has expired",
            fix="Run `laketier history` to see what is there.",
        )
    own = next((s for s in metadata.schemas if s.schema_id == snapshot.schema_id), table.schema())
    return snapshot.snapshot_id, own


def _tasks(table: Table, snapshot_id: int, request: ScanRequest, schema: Schema) -> tuple[list[FileScanTask], bool]:
    """The files to read, and whether they are those alone that the filters leave."""
    from pyiceberg.expressions import AlwaysTrue, And

    expressions = [e for predicate in request.filters if (e := to_expression(predicate, schema)) is not None]
    row_filter = expressions[0] if len(expressions) == 1 else And(*expressions) if expressions else AlwaysTrue()
    try:
        tasks, filtered = _files(table, snapshot_id, row_filter)
    except ValueError as error:
        if "equality deletes" not in str(error):
            raise
        raise FeatureNotSupported(
            "reading equality deletes",
            format=FORMAT,
            reason="pyiceberg can't apply them",
            fix="Compact the table with Spark's rewrite_data_files, or read it with Spark.",
        ) from error
    return sorted(tasks, key=lambda task: task.file.file_path), filtered


def _files(table: Table, snapshot_id: int, row_filter: BooleanExpression) -> tuple[list[FileScanTask], bool]:
    from pyiceberg.expressions import AlwaysTrue

    try:
        return list(table.scan(row_filter=row_filter, snapshot_id=snapshot_id).plan_files()), True
    except struct.error:
        # pyiceberg takes the bounds of dates for those of timestamps, after that promotion (version 3). Without the
        # filter there are more files, so the reader has to apply it in full.
        return list(table.scan(row_filter=AlwaysTrue(), snapshot_id=snapshot_id).plan_files()), False


def _remaining(
    request: ScanRequest, schema: Schema, metadata: TableMetadata, tasks: list[FileScanTask]
) -> tuple[Any, ...]:
    """The filters that the reader must apply: all but those that the identity partitions of every file decide."""
    specs = metadata.specs()
    used = [specs[spec_id] for spec_id in {task.file.spec_id for task in tasks}]
    decided: set[str] | None = None
    for spec in used:
        ids = {field.source_id for field in spec.fields if str(field.transform) == "identity"}
        names = {f.name for f in schema.fields if f.field_id in ids and str(f.field_type) not in ("float", "double")}
        decided = names if decided is None else decided & names
    return tuple(
        predicate
        for predicate in request.filters
        if not (
            columns_of([predicate]) <= (decided or set()) and is_positive(predicate) and is_exact(predicate, schema)
        )
    )


def _split(index: int, task: FileScanTask, resolution: Resolution, plain: frozenset[str]) -> LakeSplit:
    file = task.file
    if not str(file.file_format).upper().endswith("PARQUET"):
        raise FeatureNotSupported(
            "reading other files than Parquet", format=FORMAT, reason=f"{file.file_path} is none", fix="Use Spark."
        )
    _refuse_encrypted(file)
    partition, bucket = _partition(task, resolution.metadata)
    payload = {"path": file.file_path, **resolution.payload(file)}
    if task.delete_files:
        payload["deletes"] = json.dumps([_delete(delete) for delete in task.delete_files])
    return LakeSplit(
        index=index,
        rows=None if task.delete_files else file.record_count,
        bytes=file.file_size_in_bytes,
        bucket=bucket,
        partition=partition,
        plain_parquet=file.file_path if file.file_path in plain and not task.delete_files else None,
        files=(file.file_path,),
        payload=payload,
    )


def _refuse_encrypted(file: DataFile) -> None:
    if file.key_metadata is not None:
        raise FeatureNotSupported(
            "reading encrypted files", format=FORMAT, reason=f"{file.file_path} has a key of its own", fix="Use Spark."
        )


def _delete(file: Any) -> str:
    """The path of a file of positional deletes. Raises `FeatureNotSupported` for other kinds."""
    if not str(file.file_format).upper().endswith("PARQUET"):
        raise FeatureNotSupported(
            "reading deletion vectors",
            format=FORMAT,
            reason=f"{file.file_path} is {file.file_format}",
            fix="Compact the table with Spark's rewrite_data_files, or read it with Spark.",
        )
    return str(file.file_path)


def _partition(task: FileScanTask, metadata: TableMetadata) -> tuple[tuple[tuple[str, str | None], ...], int]:
    spec = metadata.specs()[task.file.spec_id]
    bucket_field = metadata.properties.get(BUCKETS_PROPERTY)
    bucket = -1
    shown: list[tuple[str, str | None]] = []
    types: Mapping[int, Any] = {f.field_id: f.field_type for s in metadata.schemas for f in s.fields}
    for position, field in enumerate(spec.fields):
        value = task.file.partition[position]
        if field.name == bucket_field and value is not None:
            bucket = int(value)
        kind = types.get(field.source_id)
        shown.append((field.name, None if value is None or kind is None else _shown(field, kind, value)))
    return tuple(shown), bucket


def _shown(field: Any, kind: Any, value: Any) -> str:
    try:
        return str(field.transform.to_human_string(kind, value))
    except (OverflowError, ValueError):
        return str(value)  # beyond the years 1 to 9999, where Python has no dates
