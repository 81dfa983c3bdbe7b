"""Plans scans on the driver, with pyiceberg; `laketier_iceberg.reader` reads the splits on executors."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from laketier.kit.many_objects import making_many_objects
from laketier.kit.scans import cut_to_limit
from laketier.spi import (
    FeatureNotSupported,
    LakeSource,
    LakeSplit,
    Passthrough,
    ScanPlan,
    ScanRequest,
    SnapshotNotFound,
    TableInfo,
    columns_of,
)
from laketier_iceberg.committer import IcebergState
from laketier_iceberg.connection import CatalogSettings
from laketier_iceberg.filters import is_exact, is_positive, renamed, to_expression
from laketier_iceberg.listed_file import ListedFile
from laketier_iceberg.loading import load
from laketier_iceberg.manifests import naming_damaged_manifests
from laketier_iceberg.plain import plain_files
from laketier_iceberg.resolution import Resolution
from laketier_iceberg.spec import FORMAT
from laketier_iceberg.splits import WITHOUT_DELETES, split_of
from laketier_iceberg.types import to_arrow

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.table.metadata import TableMetadata


@dataclass(frozen=True)
class IcebergSource(LakeSource):
    """Reads one table. Picklable."""

    split_payload: ClassVar[type] = ListedFile

    settings: CatalogSettings
    table: TableInfo
    io: Passthrough

    @making_many_objects()
    def plan(self, request: ScanRequest) -> ScanPlan:
        seen = request.seen(IcebergState)
        table = load(self.settings, self.table.path) if seen is None else seen.table
        snapshot_id, schema = _snapshot(table, request, str(self.table.path))
        where = str(self.table.path)
        wanted = request.projected(to_arrow(schema, where=where), where=where)
        if snapshot_id is None:
            return ScanPlan(snapshot_id=None, schema=wanted, splits=())
        with naming_damaged_manifests(table, [s for s in table.snapshots() if s.snapshot_id == snapshot_id], where):
            tasks, filtered = _tasks(table, snapshot_id, request, schema)
        remaining = _remaining(request, schema, table.metadata, tasks) if filtered else request.filters
        plain = plain_files(table.metadata, schema, [task.file for task in tasks], self.io)
        resolution = Resolution(table.metadata, schema, wanted, where)
        splits = [split_of(index, task, resolution, plain) for index, task in enumerate(tasks)]
        if request.limit is not None and not remaining and not any(task.delete_files for task in tasks):
            splits = cut_to_limit(splits, request.limit)
        return ScanPlan(snapshot_id=snapshot_id, schema=wanted, splits=tuple(splits), remaining=remaining)

    def read(self, split: LakeSplit, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        from laketier_iceberg.reader import read_split

        return read_split(split, schema, self.io)


def _snapshot(table: Table, request: ScanRequest, where: str) -> tuple[int | None, Schema]:
    """The snapshot to read, and the schema to read it with: today's for today's, its own for an older one. Today's by
    its id too: who asks for it has looked at the table, as a union read does, and columns change without a snapshot."""
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
            why="it never existed or has expired",
            fix="Run `laketier history` to list the snapshots.",
        )
    current = metadata.current_snapshot()
    if request.snapshot_id is not None and current is not None and current.snapshot_id == snapshot.snapshot_id:
        return snapshot.snapshot_id, table.schema()
    own = next((s for s in metadata.schemas if s.schema_id == snapshot.schema_id), table.schema())
    return snapshot.snapshot_id, own


def _tasks(table: Table, snapshot_id: int, request: ScanRequest, schema: Schema) -> tuple[list[FileScanTask], bool]:
    """The files to read, and whether they are those alone that the filters leave. pyiceberg takes the names of filters
    for today's, also where a snapshot of ``schema`` has its own."""
    today = table.schema()
    told = [renamed(predicate, schema, today) for predicate in request.filters]
    known = [predicate for predicate in told if predicate is not None]
    expressions = [e for predicate in known if (e := to_expression(predicate, today)) is not None]
    try:
        tasks, filtered = _files(table, snapshot_id, expressions)
        filtered = filtered and len(known) == len(told)
    except ValueError as error:
        if "equality deletes" not in str(error):
            raise
        raise FeatureNotSupported(
            "reading equality deletes",
            format=FORMAT,
            reason="pyiceberg can't apply them",
            fix=WITHOUT_DELETES,
        ) from error
    return sorted(tasks, key=lambda task: task.file.file_path), filtered


def _files(table: Table, snapshot_id: int, expressions: list[BooleanExpression]) -> tuple[list[FileScanTask], bool]:
    """Each try skips fewer files, by fewer expressions. After the first one the reader applies all filters in full."""
    from pyiceberg.expressions import AlwaysTrue, Or

    def planned(by: list[BooleanExpression]) -> list[FileScanTask]:
        return list(table.scan(row_filter=_all_of(by), snapshot_id=snapshot_id).plan_files())

    try:
        return planned(expressions), True
    except (struct.error, OverflowError):
        # pyiceberg takes the bounds of dates for those of timestamps, after that promotion (version 3). It looks for
        # the partition of the moment beyond the first or the last one of Python, by which people mean no bound.
        return planned([AlwaysTrue()]), False
    except TypeError:
        # pyiceberg compares a partition that is null, where another side of an "or" keeps the file.
        return planned([part for each in expressions for part in _parts(each) if not isinstance(part, Or)]), False


def _parts(expression: BooleanExpression) -> Iterator[BooleanExpression]:
    from pyiceberg.expressions import And

    if isinstance(expression, And):
        yield from _parts(expression.left)
        yield from _parts(expression.right)
    else:
        yield expression


def _all_of(expressions: list[BooleanExpression]) -> BooleanExpression:
    from pyiceberg.expressions import AlwaysTrue, And

    return And(*expressions) if len(expressions) > 1 else expressions[0] if expressions else AlwaysTrue()


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
