"""Logs: ordered records that grow. Topics, landing zones, Fluss tables and lake tables are logs.

A log has buckets: Kafka's partitions, Fluss's buckets of each partition, one bucket for a folder. Within a bucket, rows
have offsets that only grow and need not be dense. A *range* is a start and an end offset per bucket, half open.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa

from laketier.spi.errors import ConfigError, FeatureNotSupported, IncompatibleData
from laketier.spi.offsets import BucketBounds, LogOffsets, LogRange
from laketier.spi.table import BucketSpec, PartitionField


@dataclass(frozen=True)
class LogTable:
    """One table of a source.

    Attributes:
        name: Its name in the source.
        table_id: Its identity. A table that was dropped and recreated under the same name has another one.
        schema: The columns that `TableLog.read` yields.
        partition_by: The partitions of the lake table, unless the user names others.
        buckets: The buckets of the lake table, unless the user names others.
        primary_key: The primary key, empty without one.
        change_column: The column of change types (``+I``, ``-U``, ``+U``, ``-D``) of a log of changes. None for a log
            of appends.
        former_names: The former names of each renamed column, where the source keeps them. Without them a renamed
            column is a new one, and the old column gets no more values.
        properties: The source's own properties of the table.
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

    def projected(self, columns: Sequence[str] | None) -> pa.Schema:
        """Compute the schema of what `TableLog.read` yields.

        Args:
            columns: The columns to read. None for all.

        Returns:
            These columns, in this order.

        Raises:
            ConfigError: A column does not exist.
        """
        names = self.schema.names if columns is None else columns
        unknown = [name for name in names if name not in self.schema.names]
        if unknown:
            raise ConfigError(
                f"the source's table has no columns {unknown}",
                where=self.name,
                fix=f"It has {', '.join(self.schema.names)}.",
            )
        return pa.schema([self.schema.field(name) for name in names])


@dataclass(frozen=True, kw_only=True)
class LogSplit:
    """A part of a range that one task reads. It travels with its log, in one pickle.

    Attributes:
        bucket: The bucket.
        start: The first offset.
        end: The offset after the last one.
        bytes: The size of the split, by which tasks are balanced. None where it is unknown.
        payload: What else `TableLog.read` needs: a frozen dataclass of the source's own.
        unordered: The rows are those of a snapshot: which of two is newer is not known, in this split and in others of
            its range. So no two different ones may have the same key. Never of rows that came after the reader began.
    """

    bucket: str
    start: int
    end: int
    bytes: int | None = None
    payload: Any = field(default=None, hash=False)
    unordered: bool = False

    def cut(self, most: int) -> Iterator[LogSplit]:
        """Cut the split into even parts. For logs whose rows are spread evenly over the offsets: the parts have no
        ``bytes``, and each part has the whole ``payload``.

        Args:
            most: The number of offsets of a part at most.

        Returns:
            The parts. None for a split without offsets.
        """
        parts = -(-(self.end - self.start) // most)
        bounds = [self.start + (self.end - self.start) * part // parts for part in range(parts + 1)] if parts else []
        for first, last in pairwise(bounds):
            yield replace(self, start=first, end=last, bytes=None)


@dataclass(frozen=True, kw_only=True)
class BadRecord:
    """A record that is no row of its table, as it was in the log.

    Attributes:
        bucket: Its bucket.
        offset: Its offset.
        error: Why it is no row.
        value: Its bytes.
        key: The bytes of its key.
        at: Its time, in ms since the epoch, UTC.
        schema_version: The version of the schema that it was read with, where the source has versions.
    """

    bucket: str
    offset: int
    error: str
    value: bytes | None
    key: bytes | None = None
    at: int | None = None
    schema_version: str | None = None


OnBadRecord = Callable[[BadRecord], None]
"""Called with each bad record. Raises to stop the read."""

FindUnstorable = Callable[[pa.RecordBatch], Mapping[int, str]]
"""Gets a batch of rows, with all columns of the table. Returns the rows, by their place, that the lake can't store, and
for each the reason. Empty for most batches. Changes nothing of the batch."""


def fail_on_bad_record(record: BadRecord) -> None:
    """Stop the read at the first bad record.

    Args:
        record: The bad record.

    Raises:
        IncompatibleData: Always.
    """
    raise IncompatibleData(
        f"the record at offset {record.offset} of bucket {record.bucket!r} can't be read",
        why=record.error,
        fix="Correct the producer or the schema, or set on-bad-record to dead-letter or drop.",
    )


class TableLog(ABC):
    """The log of one table. Made on the driver by `LogSource.open`. `bounds`, `stamp`, `plan` and `decode` run on
    the driver, `read` and `identify` on executors. Picklable; it holds no connection while it is pickled."""

    @property
    @abstractmethod
    def table(self) -> LogTable:
        """The table, as it was when the log was opened."""

    @abstractmethod
    def bounds(self) -> Mapping[str, BucketBounds]:
        """Ask for the offsets that each bucket holds now. Only records that are final count, such as those of committed
        transactions.

        Returns:
            The bounds of all existing buckets, empty buckets too.

        Raises:
            StorageError: The source does not answer.
        """

    def stamp(self, position: LogOffsets) -> str | None:
        """Tell what lies just before a position from what would lie there in another history of the log, as one that
        was put back from a backup, and has grown again, gives the same offsets to other records. The same as long as
        the log keeps that history, in whatever process, and never equal in two of them. A round stores it, and the
        next one refuses to go on where it is another (`OffsetsRewritten`). Its cost does not grow with the log.

        Args:
            position: The offsets after the last ones that were read.

        Returns:
            The stamp: a short text. None, as by default, where the source has none, or that part has expired. Of a log
            whose buckets expire one by one, make it with `joined_stamps`.

        Raises:
            TableChanged: The source's table is another one by now.
            StorageError: The source does not answer.
        """
        return None

    def identify(self) -> str | None:
        """Ask for the id that the source's table of this name has now, on an executor. Spark's union read has no last
        look on the driver: at the end of each of its tasks that read of this log it compares the id, and then `stamp`,
        which is asked for on the executor too. A log whose `read` gives no row of another table of that name, however
        late it is called, does not need it.

        Returns:
            What `LogTable.table_id` would be now. None, as by default, where `stamp` or `read` tells another table.

        Raises:
            TableNotFound: The table is gone.
            StorageError: The source does not answer, or does not tell whether the table is gone. It is asked again.
        """
        return None

    @abstractmethod
    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        """Cut a range into splits, none for buckets without offsets in it. The same range gives the same rows each
        time, as long as it has not expired. Each split of a bucket begins where the one before ends, and together they
        are its part of the range, also where there is nothing to read: a bucket that is left out is refused. Several
        may share their offsets, where their payloads say what each reads of them.

        Args:
            wanted: The range.

        Returns:
            The splits.

        Raises:
            OffsetsExpired: A part of the range has expired.
            StorageError: The source does not answer, or the range ends beyond the log.
        """

    @abstractmethod
    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows of a split, in the order of their offsets. Ends when the split's end is reached, even when
        offsets before it are missing, and never earlier.

        Args:
            split: A split of a plan.
            columns: The columns of `table` to read, in this order. None for all.
            on_bad_record: Called with each record that is no row of the table. Of a record of several rows, one of
                which is none, no row is given: `decode` gives them all.

        Returns:
            Batches of rows.

        Raises:
            StorageError: The source does not answer.
            OffsetsExpired: A part of the split has expired.
        """

    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """Read as `read` does, without the rows that the lake can't store: their records are told as bad ones, with
        their bytes and offsets. Called instead of `read` after a writer refused a row of the split. A record of which
        one row is unstorable is left out with all of its rows, as `decode` gives them all. Without this method, the
        core tells such a row at the last offset of its split, without bytes, and it can't be replayed.

        Args:
            split: A split of a plan.
            find_unstorable: Called with each batch before it is yielded.
            on_bad_record: Called with each record that is no row of the table, or not one that the lake can store.

        Returns:
            Batches of rows, with all columns of `table`.

        Raises:
            FeatureNotSupported: At once: the source does not tell which record a row came from.
            StorageError: The source does not answer.
            OffsetsExpired: A part of the split has expired.
        """
        raise FeatureNotSupported(
            "telling the records of rows",
            format=f"the log of {self.table.name}",
            reason="the source hands over rows without their records",
        )

    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """Decode bad records again, from the bytes that were kept. Each gives a row or is told; one without a value may
        be passed over. Driver.

        Args:
            records: The bad records.
            on_bad_record: Called with each record that still is no row: the same record, with its present error.

        Returns:
            Batches of rows, with the columns of `table`.

        Raises:
            FeatureNotSupported: The source needs more of a record than is kept.
        """
        raise FeatureNotSupported(
            "the replay of dead letters",
            format=f"the log of {self.table.name}",
            reason="the source does not decode stored records",
        )

    def close(self) -> None:
        """Release the resources that the log has on the driver. A service opens the log of a table again at each look
        at the sources, and closes the older one once no round reads it: in any thread, as the last of them ends."""
        return
