"""A log whose primary key its user names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from laketier.rounds.changes import check_key
from laketier.spi import (
    BadRecord,
    BucketBounds,
    ConfigError,
    FindUnstorable,
    LogOffsets,
    LogRange,
    LogSplit,
    LogTable,
    OnBadRecord,
    TableLog,
    fail_on_bad_record,
)


@dataclass(frozen=True)
class KeyedLog(TableLog):
    """``log`` as if its source had said what ``keyed`` says of it."""

    log: TableLog
    keyed: LogTable

    @classmethod
    def of(cls, log: TableLog, primary_key: tuple[str, ...] | None, change_column: str | None) -> KeyedLog:
        """``log`` with another key or change column; None leaves what the source says. Raises `ConfigError` for
        columns that it does not have, and `UnsupportedType` for a key that can't be compared."""
        table = log.table
        key = table.primary_key if primary_key is None else primary_key
        column = change_column or table.change_column
        if column is not None and column not in table.schema.names:
            raise ConfigError(
                f"change-column = {column!r} is no column of the log",
                where=table.name,
                fix=f"Its columns are {', '.join(table.schema.names)}.",
            )
        if change_column is not None and not key:
            raise ConfigError(
                f"change-column = {change_column!r} needs a primary key",
                where=table.name,
                why="without one, nothing says which row a change is about",
                fix="Set primary-key.",
            )
        if key:
            check_key(rows_of_changes(table.schema, column), key, where=table.name)
        # Without a key, the change types are a column like any other.
        return cls(log, replace(table, primary_key=key, change_column=column if key else None))

    @property
    def table(self) -> LogTable:
        return self.keyed

    def bounds(self) -> Mapping[str, BucketBounds]:
        return self.log.bounds()

    def stamp(self, position: LogOffsets) -> str | None:
        return self.log.stamp(position)

    def identify(self) -> str | None:
        return self.log.identify()

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return self.log.plan(wanted)

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        return self.log.read(split, columns=columns, on_bad_record=on_bad_record)

    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        return self.log.read_storable(split, find_unstorable, on_bad_record=on_bad_record)

    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        return self.log.decode(records, on_bad_record=on_bad_record)

    def close(self) -> None:
        self.log.close()


def rows_of_changes(schema: pa.Schema, change_column: str | None) -> pa.Schema:
    """The columns of the rows that a log of changes is about."""
    return pa.schema([field for field in schema if field.name != change_column])
