"""A Fluss table as a log."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from laketier.spi import (
    BucketBounds,
    BucketSpec,
    ConfigError,
    LogRange,
    LogSplit,
    LogTable,
    OnBadRecord,
    PartitionField,
    StorageError,
    TableLog,
    fail_on_bad_record,
)
from laketier_fluss.buckets import Bucket
from laketier_fluss.children import ask, borrowed
from laketier_fluss.connection import Connection
from laketier_fluss.options import FlussTableOptions
from laketier_fluss.reading import expired, partition_gone
from laketier_fluss.rows import Asked
from laketier_fluss.types import TIMESTAMP, refuse_nanoseconds

_LOG = logging.getLogger("laketier.fluss")
_FUNCTIONS = ("fluss", "iceberg", "paimon", "hudi")
"""Bucket functions. Fluss uses that of the lake format that a table was made for; Lance's is its own."""


@dataclass(frozen=True)
class _Added:
    """Columns of the log that are none of the table."""

    bucket: str | None
    offset: str | None
    timestamp: str | None
    change: str | None

    @property
    def fields(self) -> list[pa.Field]:
        kinds = [
            (self.bucket, pa.int32()),
            (self.offset, pa.int64()),
            (self.timestamp, TIMESTAMP),
            (self.change, pa.string()),
        ]
        return [pa.field(name, kind, nullable=False) for name, kind in kinds if name is not None]


class FlussLog(TableLog):
    """A bucket of the log is a bucket of the table, in a partition where it has those; offsets are the bucket's own.

    Rows of a table without a primary key come as Arrow. Changes of one with a primary key come row by row, as the
    client tells change types in no other way.
    """

    def __init__(
        self, connection: Connection, table: LogTable, rows: pa.Schema, options: FlussTableOptions, added: _Added
    ) -> None:
        self._connection = connection
        self._table = table
        self._rows = rows
        self._options = options
        self._added = added
        self._ends: dict[str, list[int]] = {}
        self._seen: dict[str, int] = {}

    @classmethod
    def open(cls, connection: Connection, name: str, options: FlussTableOptions) -> FlussLog:
        """Describe the table. Raises `TableNotFound`, `ConfigError`, `UnsupportedType` and `StorageError`."""
        header, payload = ask(connection, {"op": "describe", "table": name})
        rows = pa.ipc.read_schema(payload)
        added = _Added(
            options.bucket_column if options.include_bucket else None,
            options.offset_column if options.include_offset else None,
            options.timestamp_column if options.include_timestamp else None,
            options.change_column if header["primary_key"] else None,
        )
        if added.timestamp is not None or added.change is not None:
            refuse_nanoseconds(rows, name)
        table = LogTable(
            name=name,
            table_id=header["id"],
            schema=_with_added(rows, added, name),
            partition_by=tuple(map(PartitionField, header["partition_keys"])) if options.with_partitions else (),
            buckets=_buckets(header) if options.with_buckets else None,
            primary_key=tuple(header["primary_key"]),
            change_column=added.change,
            properties=header["properties"],
        )
        return cls(connection, table, rows, options, added)

    def __getstate__(self) -> dict[str, Any]:
        # What was seen is the driver's.
        return {**self.__dict__, "_ends": {}, "_seen": {}}

    @property
    def table(self) -> LogTable:
        """See `TableLog.table`."""
        return self._table

    def bounds(self) -> Mapping[str, BucketBounds]:
        """See `TableLog.bounds`. Two requests per partition. Raises `TableNotFound` and `TableChanged` too.

        A table with a primary key ends after its last record, see `laketier_fluss.tail`; and it begins at 0, as the
        rows that changed before its earliest change would be missing: `plan` refuses that."""
        found = self._look(None)
        self._tell_dropped(found)
        whole = bool(self._table.primary_key) and not self._options.truncated_changelog
        return {bucket: BucketBounds(0 if whole else earliest, latest) for bucket, (earliest, latest) in found.items()}

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        """See `TableLog.plan`. Raises `StorageError` for a range that ends beyond the log."""
        asked = wanted.by_bucket
        if not asked:
            return ()
        bounds = self._look([Bucket.parse(bucket) for bucket in asked])
        splits: list[LogSplit] = []
        for bucket, (start, end) in asked.items():
            if bucket not in bounds:
                raise partition_gone(self._table.name, bucket, start, end)
            earliest, latest = bounds[bucket]
            if start < earliest:
                raise expired(self._table.name, bucket, start, end, earliest)
            if end > latest:
                raise StorageError(
                    f"bucket {bucket} ends at offset {latest}, before the range {start} to {end}",
                    where=self._table.name,
                    why="its leader lost records, or has just started",
                    fix="If it stays so, compare it with the lake table.",
                )
            splits.extend(LogSplit(bucket=bucket, start=start, end=end).cut(self._options.split_offsets))
        return tuple(splits)

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """See `TableLog.read`. In a process of its own; each of Fluss's records is a row. Raises `ConfigError` for
        columns that are not there, and `TableChanged`."""
        wanted = self._table.projected(columns)
        request = {
            "op": "read",
            "table": self._table.name,
            "id": self._table.table_id,
            "bucket": split.bucket,
            "start": split.start,
            "end": split.end,
            "asked": asdict(self._asked(wanted.names)),
        }
        sent = wanted
        with borrowed(self._connection) as child:
            for header, payload in child.ask(request):
                if "schema" in header:
                    sent = pa.ipc.read_schema(payload)
                elif "rows" in header:
                    yield _received(header["rows"], payload, sent, wanted)

    def _asked(self, names: Sequence[str]) -> Asked:
        added = self._added
        return Asked(
            columns=[name for name in names if name in self._rows.names],
            types=self._rows.serialize().to_pybytes().hex(),
            order=list(names),
            # Which records there are must not depend on the columns: a table with a primary key has no other way.
            by_row=bool(self._table.primary_key) or added.timestamp in names,
            bucket=added.bucket if added.bucket in names else None,
            offset=added.offset if added.offset in names else None,
            timestamp=added.timestamp if added.timestamp in names else None,
            change=added.change if added.change in names else None,
        )

    def _look(self, buckets: list[Bucket] | None) -> dict[str, tuple[int, int]]:
        partitions = None
        if buckets is not None:
            partitions = sorted({each.partition.id for each in buckets if each.partition is not None})
        request = {
            "op": "bounds",
            "table": self._table.name,
            "id": self._table.table_id,
            "partitions": partitions,
            "known": self._ends,
        }
        header, _ = ask(self._connection, request)
        self._ends.update(header.get("known", {}))
        return {bucket: (earliest, latest) for bucket, (earliest, latest) in header["bounds"].items()}

    def _tell_dropped(self, found: Mapping[str, tuple[int, int]]) -> None:
        """A dropped partition takes with it what was not read, and Fluss can't tell any more what that was."""
        for bucket in sorted(self._seen.keys() - found.keys()):
            _LOG.warning(
                "[table=%s] bucket %s is gone with its partition; it ended at offset %d when it was last seen, and "
                "records written to it after that are lost",
                self._table.name,
                bucket,
                self._seen[bucket],
            )
        self._seen = {bucket: latest for bucket, (_, latest) in found.items()}


def _with_added(rows: pa.Schema, added: _Added, table: str) -> pa.Schema:
    fields = added.fields
    taken = {name.lower() for name in rows.names}
    for field in fields:
        if field.name.lower() in taken:
            raise ConfigError(
                f"there would be two columns {field.name!r}",
                where=table,
                fix="Give the added one another name: bucket-column, offset-column, timestamp-column or change-column.",
            )
        taken.add(field.name.lower())
    return pa.schema([*(field.remove_metadata() for field in rows), *fields])


def _buckets(described: Mapping[str, Any]) -> BucketSpec | None:
    keys = tuple(described["bucket_keys"])
    if not keys:
        return None  # its rows go to any bucket
    lake = described["properties"].get("table.datalake.format", "fluss")
    return BucketSpec(described["buckets"], keys, lake if lake in _FUNCTIONS else "fluss")


def _received(rows: int, payload: pa.Buffer | None, sent: pa.Schema, wanted: pa.Schema) -> pa.RecordBatch:
    if payload is None:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    batch = pa.ipc.read_record_batch(payload, sent)
    return batch if batch.schema.equals(wanted) else batch.cast(wanted)
