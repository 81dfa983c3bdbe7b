"""A log whose answers are held against the contract of `laketier.spi.TableLog` before anybody believes them.

What a source says of its offsets becomes the watermark of the lake table. So a plan with a hole would be lost rows, one
with an overlap doubled rows, and an offset that is no integer a watermark that nobody can read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from laketier.kit.library_errors import close_and_tell
from laketier.registry.source_errors import naming_source_errors
from laketier.rounds.checked_plan import PlanCheck
from laketier.rounds.described import misdescribed
from laketier.rounds.reused import Kept
from laketier.spi import (
    BadRecord,
    BucketBounds,
    FindUnstorable,
    LogOffsets,
    LogRange,
    LogSplit,
    LogTable,
    OnBadRecord,
    PluginBroken,
    TableLog,
    fail_on_bad_record,
)
from laketier.spi.visible import is_utf8

_MOST = 2**63
_LONGEST_STAMP = 1000
"""It goes into each watermark."""
_END = object()


@dataclass(frozen=True)
class CheckedLog(TableLog):
    """``log``, with each answer as the contract has it. ``described``: its table, asked for once."""

    log: TableLog
    described: LogTable

    @classmethod
    def of(cls, log: TableLog, name: str) -> CheckedLog:
        """``name``: the table that was opened. Raises `PluginBroken` for a table without an identity or columns, and
        `StorageError` where the source fails."""
        if not isinstance(log, TableLog):
            raise _broken(name, f"`LogSource.open` returned {log!r}, which is no TableLog")
        with naming_source_errors("TableLog.table", where=name):
            table = log.table
        if not isinstance(table, LogTable):
            raise _broken(name, f"`TableLog.table` is {table!r}, which is no LogTable")
        if not _is_name(table.table_id):
            raise _broken(name, f"`LogTable.table_id` is {table.table_id!r}", "an identity is text, and not empty")
        if not isinstance(table.schema, pa.Schema):
            raise _broken(name, f"`LogTable.schema` is {table.schema!r}, which is no schema of Arrow")
        if (wrong := misdescribed(table)) is not None:
            what, rule = wrong
            raise _broken(name, f"`LogTable.{what}` is {getattr(table, what)!r:.300}", rule)
        return cls(log, table)

    @property
    def table(self) -> LogTable:
        return self.described

    def bounds(self) -> Mapping[str, BucketBounds]:
        """Raises also `PluginBroken`, and `StorageError` where the source fails."""
        with self._asking("bounds"):
            found = self.log.bounds()
        if not isinstance(found, Mapping):
            raise self._broken(f"`bounds` returned {found!r}", "it returns a mapping of buckets to BucketBounds")
        for bucket, each in found.items():
            if not _is_name(bucket):
                raise self._broken(f"`bounds` has the bucket {bucket!r}", "the name of a bucket is text, and not empty")
            if not isinstance(each, BucketBounds):
                raise self._broken(f"`bounds` has {each!r} for bucket {bucket!r}, which is no BucketBounds")
            known = (each.earliest, each.latest, *(at for at in (each.initial, each.latest_at) if at is not None))
            if any(type(number) is not int or number >= _MOST for number in known):
                raise self._broken(
                    f"`bounds` has {each!r} for bucket {bucket!r}", "offsets and times are int, below 2**63"
                )
            if not 0 <= each.earliest <= each.latest or not 0 <= (each.initial or 0) <= each.latest:
                raise self._broken(
                    f"`bounds` has {each!r} for bucket {bucket!r}",
                    "offsets begin at 0 or later, and none is greater than the latest",
                )
        return found

    def stamp(self, position: LogOffsets) -> str | None:
        """Raises as `bounds` does."""
        with self._asking("stamp"):
            found = self.log.stamp(position)
        if found is not None and (not _is_name(found) or len(found) > _LONGEST_STAMP):
            raise self._broken(f"`stamp` returned {found!r:.300}", f"a stamp is text of 1 to {_LONGEST_STAMP} letters")
        return found

    def identify(self) -> str | None:
        """Raises as `bounds` does."""
        with self._asking("identify"):
            found = self.log.identify()
        if found is not None and not _is_name(found):
            raise self._broken(f"`identify` returned {found!r:.300}", "an identity is text, and not empty")
        return found

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        """Raises as `bounds` does."""
        with self._asking("plan"):
            planned = self.log.plan(wanted)
        if not isinstance(planned, Sequence):
            raise self._broken(f"`plan` returned {planned!r}", "it returns a sequence of splits")
        PlanCheck(wanted, self._broken).check(planned)
        return planned

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        names = self.described.schema.names if columns is None else list(columns)

        def checked(record: BadRecord) -> None:
            self._check_bad(record, split)
            on_bad_record(record)

        batches: Any = self.log.read(split, columns=columns, on_bad_record=checked)
        if not isinstance(batches, Iterator):
            raise self._broken(f"`read` returned {batches!r}", "it returns an iterator of record batches")
        yield from self._checked("read", batches, names)

    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        def checked(record: BadRecord) -> None:
            self._check_bad(record, split)
            on_bad_record(record)

        batches: Any = self.log.read_storable(split, find_unstorable, on_bad_record=checked)
        if not isinstance(batches, Iterator):
            raise self._broken(f"`read_storable` returned {batches!r}", "it returns an iterator of record batches")
        return self._checked("read_storable", batches, self.described.schema.names)

    def _checked(self, what: str, batches: Iterator[Any], names: list[str]) -> Iterator[pa.RecordBatch]:
        kept = Kept()
        for batch in chain(batches, (_END,)):
            if kept.are_changed():
                raise self._broken(
                    f"`{what}` wrote into the memory of a batch that it had given before",
                    "rows would be lost, and others be there twice; each batch has memory of its own",
                )
            if batch is _END:
                return
            if not isinstance(batch, pa.RecordBatch):
                raise self._broken(f"`{what}` gave {type(batch).__name__}", "it gives record batches")
            if batch.schema.names != names:
                raise self._broken(
                    f"`{what}` gave the columns {', '.join(batch.schema.names)}", f"it gives {', '.join(names)}"
                )
            kept.hold(batch)
            yield batch

    def _check_bad(self, record: Any, split: LogSplit) -> None:
        if not _is_record(record):
            raise self._broken(
                f"`on_bad_record` got {record!r:.300}",
                "it gets a BadRecord, whose error is text, its values bytes, its time int",
            )
        if (
            record.bucket != split.bucket
            or type(record.offset) is not int
            or not (split.start <= record.offset < split.end)
        ):
            raise self._broken(
                f"`on_bad_record` got offset {record.offset!r} of bucket {record.bucket!r}",
                f"the split is of bucket {split.bucket!r}, from {split.start} to {split.end}",
            )

    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        left = Counter(map(_identity, records))
        accounted = sum(record.value is None for record in records)

        def checked(record: Any) -> None:
            nonlocal accounted
            error: Any = getattr(record, "error", None)
            is_known = isinstance(record, BadRecord) and _has_bytes(record) and left[_identity(record)]
            if not is_known or not isinstance(error, str):
                raise self._broken(
                    f"`decode` told {record!r:.300}",
                    "it tells the records that it got, each once, with an error as text",
                )
            left[_identity(record)] -= 1
            accounted += record.value is not None
            on_bad_record(record)

        batches = self.log.decode(records, on_bad_record=checked)
        for batch in self._checked("decode", batches, self.described.schema.names):
            accounted += batch.num_rows
            yield batch
        if accounted < len(records):
            raise self._broken(
                f"`decode` says nothing of {len(records) - accounted} of {len(records)} records",
                "each that has a value is a row or is told; as dead letters they would be taken to be replayed",
            )

    def close(self) -> None:
        """Raises nothing that the source did: what was read is read, and the logs of others are to be closed."""
        close_and_tell(self.log.close, f"[table={self.described.name}] the log")

    def _asking(self, method: str) -> AbstractContextManager[None]:
        return naming_source_errors(f"TableLog.{method}", where=self.described.name)

    def _broken(self, what: str, rule: str | None = None) -> PluginBroken:
        return _broken(self.described.name, what, rule)


def _broken(name: object, what: str, rule: str | None = None) -> PluginBroken:
    return PluginBroken(
        f"the source breaks its contract: {what}{'' if rule is None else f'; {rule}'}",
        where=str(name),
        fix="Nothing was published. Report it to the author of the source.",
    )


def _is_name(value: object) -> bool:
    return bool(value) and is_utf8(value)


def _is_record(record: Any) -> bool:
    said: Any = record if isinstance(record, BadRecord) else None
    return (
        said is not None
        and isinstance(said.error, str)
        and _has_bytes(said)
        and isinstance(said.at, int | None)
        and (said.schema_version is None or is_utf8(said.schema_version))
    )


def _has_bytes(record: BadRecord) -> bool:
    return all(value is None or isinstance(value, bytes) for value in (record.value, record.key))


def _identity(record: BadRecord) -> tuple[str, int, bytes | None, bytes | None]:
    return record.bucket, record.offset, record.key, record.value
