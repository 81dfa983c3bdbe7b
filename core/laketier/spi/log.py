"""A log: where rows come from continuously. Topics, landing zones, Fluss tables and lake tables are logs.

A log has buckets (Kafka's partitions, Fluss's partition and bucket, one for a folder). Within a bucket rows have
offsets that only grow; they need not be dense. A *range* is a start and an end per bucket, half open.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import pyarrow as pa

from laketier.spi.errors import CorruptTable, FeatureNotSupported, IncompatibleData
from laketier.spi.options import NoOptions
from laketier.spi.table import BucketSpec, PartitionField


class LogOffsets(Mapping[str, int]):
    """A position in a log: bucket → the next offset to read. Immutable; its text is canonical, so that equal positions
    have equal text in tokens."""

    def __init__(self, offsets: Mapping[str, int] | None = None) -> None:
        self._offsets = dict(sorted((offsets or {}).items()))

    def __getitem__(self, bucket: str) -> int:
        return self._offsets[bucket]

    def __iter__(self) -> Iterator[str]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def __hash__(self) -> int:
        return hash(self.to_text())

    def __repr__(self) -> str:
        return f"LogOffsets({self._offsets})"

    def to_text(self) -> str:
        """Canonical JSON."""
        return json.dumps(self._offsets, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> LogOffsets:
        """Read what `to_text` wrote. Raises `CorruptTable` for anything else."""
        try:
            offsets = json.loads(text)
            if not isinstance(offsets, dict) or any(type(offset) is not int for offset in offsets.values()):
                raise TypeError("not a mapping of buckets to integers")
        except (ValueError, TypeError) as error:
            raise CorruptTable("the offsets of a log can't be read", why=f"{error}: {text[:200]!r}") from error
        return cls(offsets)


@dataclass(frozen=True)
class LogRange:
    """What a round reads: ``start`` (inclusive) and ``end`` (exclusive), with the same buckets."""

    start: LogOffsets
    end: LogOffsets

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in it."""
        return all(self.end[bucket] <= self.start.get(bucket, 0) for bucket in self.end)

    @property
    def offsets(self) -> int:
        """How many offsets it spans: at least as many as records."""
        return sum(max(0, self.end[bucket] - self.start.get(bucket, 0)) for bucket in self.end)


@dataclass(frozen=True)
class BucketBounds:
    """What a bucket holds: offsets from ``earliest`` to ``latest`` (exclusive). ``latest_at``: when its newest record
    was written (ms since the epoch, UTC), None where that is unknown or there is none. ``initial``: where a reader
    that has nothing of the bucket begins; None for ``earliest``. It may lie before that: then the log gives a range
    from there to ``latest`` although the records as such expired, as lake tables do, which have them in a snapshot."""

    earliest: int
    latest: int
    latest_at: int | None = None
    initial: int | None = None


@dataclass(frozen=True)
class LogTable:
    """One table of a source.

    ``table_id`` is its identity: another one after it was dropped and made again under its name. ``schema`` are the
    columns that `TableLog.read` yields. ``partition_by``, ``buckets`` and ``primary_key`` are what the lake table is
    created with, unless the user says otherwise. ``change_column`` is the column of change types (``+I``, ``-U``,
    ``+U``, ``-D``) of a log of changes, None for one of appends. ``former_names``: column → names that it had, where
    the source keeps them: without, a renamed column is a new one, and the old one gets no more values.
    """

    name: str
    table_id: str
    schema: pa.Schema
    partition_by: tuple[PartitionField, ...] = ()
    buckets: BucketSpec | None = None
    primary_key: tuple[str, ...] = ()
    change_column: str | None = None
    former_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class LogSplit:
    """A part of a range that one task reads: ``start`` to ``end`` of ``bucket``. ``bytes`` for the balance of tasks,
    where known. ``payload`` is the source's own."""

    bucket: str
    start: int
    end: int
    bytes: int | None = None
    payload: Mapping[str, str] = field(default_factory=dict, hash=False)

    def cut(self, most: int) -> Iterator[LogSplit]:
        """The same offsets in even parts of at most ``most`` each; none for no offsets. For logs whose rows lie evenly:
        ``bytes`` are left out, and each part has the whole ``payload``."""
        parts = -(-(self.end - self.start) // most)
        bounds = [self.start + (self.end - self.start) * part // parts for part in range(parts + 1)] if parts else []
        for first, last in pairwise(bounds):
            yield replace(self, start=first, end=last, bytes=None)


@dataclass(frozen=True, kw_only=True)
class BadRecord:
    """A record that could not be made a row, as it was in the log. ``at``: its time, ms since the epoch, UTC."""

    bucket: str
    offset: int
    error: str
    value: bytes | None
    key: bytes | None = None
    at: int | None = None
    schema_version: str | None = None


OnBadRecord = Callable[[BadRecord], None]
"""What becomes of one. Raises when it must not be passed over."""


def fail_on_bad_record(record: BadRecord) -> None:
    """Raises `IncompatibleData`."""
    raise IncompatibleData(
        f"the record at offset {record.offset} of bucket {record.bucket!r} can't be read",
        why=record.error,
        fix="Mend the producer or the schema, or set on-bad-record to dead-letter or drop.",
    )


class TableLog(ABC):
    """The log of one table. Made on the driver by `LogSource.open`, where `bounds` and `plan` run; picklable: `read`
    runs on executors. Holds no connection while it is pickled."""

    @property
    @abstractmethod
    def table(self) -> LogTable:
        """The table, as it was when the log was opened."""

    @abstractmethod
    def bounds(self) -> Mapping[str, BucketBounds]:
        """What each bucket holds now: all buckets that exist, empty ones too. Only what may be read for good counts
        (of transactions: committed ones). Raises `StorageError` when the source does not answer."""

    @abstractmethod
    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        """Cut a range into splits, none for empty buckets. The same range gives the same rows each time, as long as
        it has not expired. Raises `OffsetsExpired` when a part of it is gone already."""

    @abstractmethod
    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a split, in the order of their offsets, with the columns of `table` (or these of them, in this
        order). Ends when the split's end is reached, whatever is missing before it; never earlier: a source that does
        not answer raises `StorageError`, and a range that is gone `OffsetsExpired`. A record that is none of the
        table's rows goes to ``on_bad_record``."""

    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """The rows of records that were none when they were read, from what was kept of them, with the columns of
        `table`. One that still is none goes to ``on_bad_record``: the same record, with the error of today. Driver.
        Raises `FeatureNotSupported` where the source needs more of a record than is kept."""
        raise FeatureNotSupported(
            "the replay of dead letters",
            format=f"the log of {self.table.name}",
            reason="the source does not decode stored records",
        )

    def close(self) -> None:
        """Release what the driver's half holds."""
        return


class LogSource(ABC):
    """A system that holds logs. Driver only."""

    @abstractmethod
    def list_tables(self) -> Sequence[str]:
        """The names of all tables there are now, sorted."""

    @abstractmethod
    def open(self, name: str, options: Any) -> TableLog:
        """The log of a table. ``options``: an instance of the plugin's ``table_options_type``. Raises `TableNotFound`,
        and `ConfigError` for options that do not fit it."""

    def close(self) -> None:
        """Release what it holds."""
        return


@dataclass(frozen=True)
class LogSourceConfig:
    """What `LogSourcePlugin.create_source` gets: the name that the user gave the source, and the plugin's own options,
    an instance of its ``options_type``, already checked."""

    name: str
    options: Any = field(default_factory=NoOptions)


class LogSourcePlugin(ABC):
    """A kind of source. Returned by the hook ``laketier_source`` of the module that the entry point (group
    ``laketier.sources``, name = `identifier`) points at. Importing that module must not import the client library: do
    so inside `create_source` or later. Stateless."""

    identifier: ClassVar[str]
    """The value of ``type`` in a service's file. Equal to the entry point's name."""
    spi_version: ClassVar[int]
    """The version that the plugin was written for (`SOURCE_SPI_VERSION` at the time), as a number. Not that constant,
    which is another one with the next laketier."""
    options_type: ClassVar[type] = NoOptions
    """A frozen dataclass, see `laketier.spi.options`: how to reach the system."""
    table_options_type: ClassVar[type] = NoOptions
    """The same for one table: how its records are read."""

    @abstractmethod
    def create_source(self, config: LogSourceConfig) -> LogSource:
        """Make the source, on the driver. Raises `ConfigError` for options that contradict each other."""
