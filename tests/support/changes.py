"""Logs of changes for tests, and what a table comes to that follows one: a dict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from laketier.bucketing import assigner_for
from laketier.spi import (
    BadRecord,
    BucketBounds,
    BucketSpec,
    LogRange,
    LogSplit,
    LogTable,
    OnBadRecord,
    TableDescriptor,
    TableLog,
    fail_on_bad_record,
)

ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])
CHANGES = pa.schema([*ROWS, pa.field("op", pa.string())])
Change = tuple[str, int, str]
"""Change type, key, value. Of the type ``bad``: a record that is no row."""


def applied(changes: Iterable[Change], rows: Mapping[int, str] | None = None) -> dict[int, str]:
    """The model: the rows after ``changes``."""
    found = dict(rows or {})
    for op, key, name in changes:
        if op == "-D":
            found.pop(key, None)
        elif op in ("+I", "+U"):
            found[key] = name
    return found


@dataclass(frozen=True)
class ChangeLog(TableLog):
    """In memory. ``width``: offsets of a split."""

    described: LogTable
    entries: dict[str, list[Change]] = field(default_factory=dict)
    width: int = 3

    @classmethod
    def of(cls, buckets: int = 1, aligned: BucketSpec | None = None) -> ChangeLog:
        """With a row's bucket by its key: that of ``aligned``, or another."""
        table = LogTable("t", "run", CHANGES, primary_key=("id",), change_column="op", buckets=aligned)
        count = buckets if aligned is None else aligned.count
        return cls(table, {str(number): [] for number in range(count)})

    @property
    def table(self) -> LogTable:
        return self.described

    def append(self, *changes: Change) -> None:
        for change in changes:
            self.entries[self._bucket(change[1])].append(change)

    def _bucket(self, key: int) -> str:
        spec = self.described.buckets
        if spec is None:
            return str(key * 7 % len(self.entries))
        assigner = assigner_for(TableDescriptor(ROWS, buckets=spec))
        return str(assigner.assign(pa.record_batch({"id": pa.array([key], pa.int64())}))[0].as_py())

    def until(self, end: Mapping[str, int]) -> list[Change]:
        """All changes below ``end``, bucket by bucket: each key has one bucket, so it comes to the same."""
        return [change for bucket, upto in end.items() for change in self.entries[bucket][:upto]]

    def bounds(self) -> Mapping[str, BucketBounds]:
        return {bucket: BucketBounds(0, len(changes)) for bucket, changes in self.entries.items()}

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        return [
            LogSplit(bucket=bucket, start=start, end=min(start + self.width, end))
            for bucket, end in wanted.end.items()
            for start in range(wanted.start[bucket], end, self.width)
        ]

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        rows = []
        for offset, (op, key, name) in enumerate(self.entries[split.bucket][split.start : split.end], split.start):
            if op == "bad":
                on_bad_record(BadRecord(bucket=split.bucket, offset=offset, error="no row", value=b""))
            else:
                # What is deleted has no more than its key.
                rows.append({"id": key, "name": None if op == "-D" else name, "op": op})
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=CHANGES)

    def without(self, **said: object) -> ChangeLog:
        """The same log, with another table said of it."""
        return replace(self, described=replace(self.described, **said))  # type: ignore[arg-type]
