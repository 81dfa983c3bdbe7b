"""A topic as a log."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from laketier.codecs.decoding import Decoded, Decoder, Undecodable
from laketier.kit.views import only
from laketier.spi import (
    BadRecord,
    BucketBounds,
    FeatureNotSupported,
    FindUnstorable,
    LogOffsets,
    LogRange,
    LogSplit,
    LogTable,
    StorageError,
    TableChanged,
    TableLog,
    fail_on_bad_record,
)
from laketier.spi.log import OnBadRecord
from laketier_kafka.cluster import Asked, Cluster, OffsetAt, Topic
from laketier_kafka.columns import StoredMessage, record_column, timestamp_of, unfit, with_record_columns
from laketier_kafka.last_records import stamp_of
from laketier_kafka.options import IsolationLevel, KafkaTableOptions, Tombstones
from laketier_kafka.records import RecordRange, expired, read_records


class KafkaLog(TableLog):
    """A bucket is a partition, by its number; offsets are the partition's own."""

    def __init__(
        self,
        cluster: Cluster,
        topic: Topic,
        options: KafkaTableOptions,
        decoder: Decoder,
        added: tuple[tuple[str, str], ...],
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._options = options
        self._decoder = decoder
        self._added = added
        schema = with_record_columns(decoder.schema, added)
        self._table = LogTable(topic.name, topic.topic_id, schema, former_names=dict(decoder.former_names))

    @property
    def table(self) -> LogTable:
        """See `TableLog.table`."""
        return self._table

    def bounds(self) -> Mapping[str, BucketBounds]:
        """See `TableLog.bounds`. Three requests to each leader. Raises `TableNotFound` and `TableChanged` too."""
        partitions = self._partitions()
        isolation = self._options.isolation_level
        earliest = self._offsets(partitions, Asked.EARLIEST, isolation)
        latest = self._offsets(partitions, Asked.LATEST, isolation)
        # The newest record may be one of an open transaction: brokers tell it to those who read all only.
        newest = self._offsets(partitions, Asked.NEWEST, IsolationLevel.READ_UNCOMMITTED)
        return {
            str(partition): _bounds(earliest[partition].offset, latest[partition].offset, newest[partition])
            for partition in partitions
        }

    def stamp(self, position: LogOffsets) -> str | None:
        """See `TableLog.stamp`: of the last record of each partition. It tells a topic that lost its newest records, or
        was made again on brokers without ids of topics, and has grown since. Markers of transactions that come after
        it are passed over, where the topic is not compacted. None where one of these records is not there any more.
        Raises `TableChanged` for a partition that is not there any more."""
        ends = {int(bucket): end for bucket, end in position.items() if end > 0}
        if not ends.keys() <= set(self._topic.partitions):
            missing = sorted(ends.keys() - set(self._partitions()))
            if missing:
                raise TableChanged(
                    f"the topic has no partitions {', '.join(map(str, missing))} any more, which were read",
                    where=self._topic.name,
                    why="it was deleted and made again with fewer: no topic loses partitions",
                    fix="Decide first whether the lake table is kept, dropped or renamed. Then give the topic a new "
                    "target.",
                )
        name = self._topic.name
        return stamp_of(
            self._cluster.connection, name, ends, lambda partitions: self._cluster.extents(name, partitions)
        )

    def identify(self) -> str | None:
        """See `TableLog.identify`. Its name where the log was opened without an id, on brokers that tell none: there
        the stamp tells."""
        had_id = self._topic.topic_id != self._topic.name
        now = self._cluster.topic(self._topic.name, had_id=had_id)
        return now.topic_id if had_id else now.name

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        """See `TableLog.plan`. Raises `TableChanged` when the topic was made again, and `StorageError` for a range
        that ends beyond the log."""
        asked = wanted.by_bucket
        if not asked:
            return ()
        partitions = {str(partition): partition for partition in self._partitions()}
        missing = sorted(asked.keys() - partitions.keys())
        if missing:
            raise StorageError(
                f"the topic has no partitions {', '.join(missing)}",
                where=self._topic.name,
                why=f"it has {len(partitions)}",
                fix="Check whether it was recreated, and compare it with the lake table.",
            )
        numbers = [partitions[bucket] for bucket in asked]
        earliest = self._offsets(numbers, Asked.EARLIEST, self._options.isolation_level)
        latest = self._offsets(numbers, Asked.LATEST, self._options.isolation_level)
        splits: list[LogSplit] = []
        for bucket, (start, end) in asked.items():
            first, last = earliest[partitions[bucket]].offset, latest[partitions[bucket]].offset
            if start < first:
                raise expired(self._topic.name, bucket, start, end, first)
            if end > last:
                raise StorageError(
                    f"the log of partition {bucket} ends at {last}, before the range {start} to {end}",
                    where=self._topic.name,
                    fix="Check whether the topic was recreated or its leader lost records. Compare it with the table.",
                )
            splits.extend(LogSplit(bucket=bucket, start=start, end=end).cut(self._options.split_offsets))
        return tuple(splits)

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """See `TableLog.read`. All columns of a record are decoded whatever ``columns`` says, as which records are rows
        must not depend on it. Raises `ConfigError` for columns that are not there."""
        names = self._table.projected(columns).names
        for messages in self._messages(split):
            batch = self._rows(messages, names, on_bad_record)
            if batch.num_rows:
                yield batch

    def read_storable(
        self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """See `TableLog.read_storable`."""
        for messages in self._messages(split):
            batch = self._rows(messages, self._table.schema.names, on_bad_record, find_unstorable=find_unstorable)
            if batch.num_rows:
                yield batch

    def _messages(self, split: LogSplit) -> Iterator[list[Any]]:
        wanted = RecordRange(self._topic.name, int(split.bucket), split.start, split.end)
        with closing(read_records(self._cluster.connection, wanted, self._options.isolation_level)) as records:
            yield from records

    def decode(
        self, records: Sequence[BadRecord], *, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        """See `TableLog.decode`. Raises `StorageError` for a registry that does not answer."""
        if self._options.include_headers:
            raise FeatureNotSupported(
                "the replay of dead letters",
                format=f"the topic {self._topic.name}",
                reason="its rows have the headers of records, which dead letters do not hold",
                fix="Leave include-headers out, or write the records to the topic again.",
            )
        messages = [StoredMessage(record) for record in records]
        batch = self._rows(messages, self._table.schema.names, on_bad_record, each_has_rows=True)
        if batch.num_rows:
            yield batch

    def _rows(
        self,
        messages: list[Any],
        names: Sequence[str],
        on_bad_record: OnBadRecord,
        *,
        each_has_rows: bool = False,
        find_unstorable: FindUnstorable | None = None,
    ) -> pa.RecordBatch:
        """``each_has_rows``: a value without rows, as a batch of Arrow's may be, is bad. ``find_unstorable``: called
        with the rows, where ``names`` are all columns."""
        kept = messages
        values: list[Any] = list(map(operator.methodcaller("value"), messages))
        bad: list[tuple[Any, Undecodable]] = []
        if not self._decoder.reads_tombstones and None in values:
            kept = [message for message, value in zip(messages, values, strict=True) if value is not None]
            if self._options.tombstones is Tombstones.BAD_RECORD:
                said = Undecodable(-1, "it has no value (a tombstone); tombstones: skip passes them over")
                bad = [(message, said) for message, value in zip(messages, values, strict=True) if value is None]
            values = [value for value in values if value is not None]
        decoded = self._decoder.decode(values)
        bad.extend((kept[one.index], one) for one in decoded.bad)
        if each_has_rows:
            silent = set(range(len(values))).difference(decoded.index, (one.index for one in decoded.bad))
            bad.extend((kept[place], Undecodable(-1, "it holds no rows")) for place in silent)
        # Once for each message: one may be many rows.
        is_plain = isinstance(decoded.index, range) or not self._added
        places = decoded.index if is_plain else list(dict.fromkeys(decoded.index))
        refused, made = unfit(self._added, [kept[place] for place in places] if self._added else [])
        if refused:
            why_of = {places[at]: why for at, why in refused.items()}
            bad.extend((kept[place], Undecodable(-1, why)) for place, why in why_of.items())
            left = [at for at, place in enumerate(decoded.index) if place not in why_of]
            decoded = Decoded(decoded.rows.take(pa.array(left, pa.int64())), [decoded.index[at] for at in left])
        batch = self._batch(kept, decoded, names, made if not refused and len(places) == len(decoded.index) else {})
        if find_unstorable is not None and batch.num_rows:
            why_of = {decoded.index[at]: why for at, why in find_unstorable(batch).items()}
            bad.extend((kept[place], Undecodable(-1, why)) for place, why in why_of.items())
            if why_of:  # with all rows of their records
                batch = only(batch, pa.array([place not in why_of for place in decoded.index]))
        for message, why in sorted(bad, key=lambda one: one[0].offset()):
            on_bad_record(_bad_record(message, why))
        return batch

    def _batch(
        self, messages: list[Any], decoded: Decoded, names: Sequence[str], made: Mapping[str, pa.Array]
    ) -> pa.RecordBatch:
        """``made``: columns of the messages that are there already."""
        added = {name: what for what, name in self._added}
        if not isinstance(decoded.index, range) and any(name in added for name in names):
            messages = [messages[index] for index in decoded.index]

        def column(name: str) -> pa.Array:
            if name not in added:
                return decoded.rows.column(name)
            return made[added[name]] if added[name] in made else record_column(added[name], messages)

        if not names:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * decoded.rows.num_rows, pa.struct([])))
        schema = pa.schema([self._table.schema.field(name) for name in names])
        return pa.RecordBatch.from_arrays([column(name) for name in names], schema=schema)

    def _partitions(self) -> tuple[int, ...]:
        """All there are now; their number can grow. Raises `TableChanged` for another topic under the name."""
        now = self._cluster.topic(self._topic.name)
        if now.topic_id != self._topic.topic_id:
            raise TableChanged(
                "the topic was deleted and recreated",
                where=self._topic.name,
                why=f"its id is {now.topic_id}, and was {self._topic.topic_id} when it was opened",
                fix="Open it again. Decide first whether the lake table is kept, dropped or renamed.",
            )
        return now.partitions

    def _offsets(self, partitions: Sequence[int], which: Asked, isolation: IsolationLevel) -> Mapping[int, OffsetAt]:
        return self._cluster.offsets(self._topic.name, partitions, which, isolation)


def _bounds(earliest: int, latest: int, newest: OffsetAt) -> BucketBounds:
    known = newest.timestamp >= 0 and earliest <= newest.offset < latest
    return BucketBounds(earliest, latest, newest.timestamp if known else None)


def _bad_record(message: Any, why: Undecodable) -> BadRecord:
    return BadRecord(
        bucket=str(message.partition()),
        offset=message.offset(),
        error=why.error,
        value=message.value(),
        key=message.key(),
        at=timestamp_of(message),
        schema_version=why.schema_version,
    )
