"""The records of a range of one partition. Executor."""

from __future__ import annotations

import bisect
import operator
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from laketier.spi import OffsetsExpired, StorageError
from laketier_kafka.connection import Connection, Reasons, naming_client_errors, refusal
from laketier_kafka.options import IsolationLevel

_CHUNK_RECORDS = 32_768
_CHUNK_BYTES = 16 * 1024 * 1024
_WAIT = 0.1
"""Seconds for one wait; the broker's silence is counted over many."""


@dataclass(frozen=True)
class RecordRange:
    """``start`` to ``end`` of a partition."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


def read_records(
    connection: Connection, wanted: RecordRange, isolation: IsolationLevel
) -> Generator[list[Any], None, None]:
    """The client's messages in chunks, in order. Ends when the position is at the range's end, however few records
    there are: transactions' markers and what was aborted or compacted away have offsets too.

    Raises `OffsetsExpired`, and `StorageError` when there is no progress within the connection's timeout.
    """
    from confluent_kafka import Consumer, TopicPartition

    reasons = Reasons()
    doing = f"offsets {wanted.start} to {wanted.end} were read"
    settings = {**connection.consumer_settings(isolation), "error_cb": reasons.remember}
    with naming_client_errors(connection, doing, str(wanted), reasons):
        consumer = Consumer(settings)
        try:
            consumer.assign([TopicPartition(wanted.topic, wanted.partition, wanted.start)])
            yield from _Reading(connection, wanted, consumer, reasons).chunks()
        finally:
            consumer.close()


class _Reading:
    def __init__(self, connection: Connection, wanted: RecordRange, consumer: Any, reasons: Reasons) -> None:
        from confluent_kafka import Message

        self._connection = connection
        self._wanted = wanted
        self._consumer = consumer
        self._reasons = reasons
        self._position = wanted.start
        self._waiting_for: Any = None
        self._error_of: Any = Message.error
        self._offset_of: Any = Message.offset

    def chunks(self) -> Iterator[list[Any]]:
        chunk: list[Any] = []
        size = 0
        heard = time.monotonic()
        while self._position < self._wanted.end:
            before = self._position
            # What is there already comes without a wait; a wait for many would last its whole time.
            messages = self._consumer.consume(_CHUNK_RECORDS, 0) or self._consumer.consume(1, _WAIT)
            taken = self._take(messages)
            chunk += taken
            size += sum(map(len, taken))
            self._pass_over_markers()
            if self._position > before:
                heard = time.monotonic()
            elif time.monotonic() - heard > self._connection.timeout:
                raise self._silence()
            if len(chunk) >= _CHUNK_RECORDS or size >= _CHUNK_BYTES:
                yield chunk
                chunk, size = [], 0
                heard = time.monotonic()  # the caller's time is not the broker's
        if chunk:
            yield chunk

    def _take(self, messages: list[Any]) -> list[Any]:
        """Those that are records of the range; all of them are progress."""
        if not any(map(self._error_of, messages)):
            return self._records(messages)
        taken: list[Any] = []
        run: list[Any] = []
        for message in messages:
            if message.error() is None:
                run.append(message)
                continue
            taken += self._records(run)
            run = []
            self._heed(message.error(), message.offset())
        return taken + self._records(run)

    def _records(self, messages: list[Any]) -> list[Any]:
        """Those before the range's end. Whole lists at a time: a loop in Python would be half of what reading costs."""
        if not messages or self._position >= self._wanted.end:
            return []
        offsets = [self._position - 1, *map(self._offset_of, messages)]
        if not all(map(operator.lt, offsets, offsets[1:])):
            raise StorageError(
                "records came out of order",
                where=str(self._wanted),
                why=f"of offsets {offsets[1]} to {offsets[-1]} one came again, after offset {self._position - 1}",
                fix="Run it again.",
            )
        self._position = offsets[-1] + 1
        return messages[: bisect.bisect_left(offsets, self._wanted.end) - 1]

    def _pass_over_markers(self) -> None:
        """The client passes over a transaction's marker without a message; only its position tells."""
        from confluent_kafka import TopicPartition

        if self._position < self._wanted.end:
            place = TopicPartition(self._wanted.topic, self._wanted.partition)
            self._position = max(self._position, self._consumer.position([place])[0].offset)

    def _heed(self, error: Any, offset: int) -> None:
        from laketier_kafka import client_errors

        code = error.code()
        if code == client_errors.PARTITION_EOF:
            # The end of what is there: all before it that can be read was read.
            self._position = max(self._position, offset)
            self._waiting_for = error  # an end before the range's: a new leader may not know yet how far it may tell
        elif code == client_errors.AUTO_OFFSET_RESET:
            raise self._out_of_range(error)
        elif error.retriable() or code in (
            client_errors.TRANSPORT,
            client_errors.ALL_BROKERS_DOWN,
            client_errors.RESOLVE,
        ):
            self._waiting_for = error
        else:
            doing = f"offsets {self._wanted.start} to {self._wanted.end} were read"
            raise refusal(self._connection, error, doing, str(self._wanted), self._reasons)

    def _out_of_range(self, error: Any) -> Exception:
        from confluent_kafka import TopicPartition

        wanted = self._wanted
        low, high = self._consumer.get_watermark_offsets(
            TopicPartition(wanted.topic, wanted.partition), timeout=self._connection.timeout
        )
        if self._position < low:
            return expired(wanted.topic, str(wanted.partition), self._position, wanted.end, low)
        return StorageError(
            f"the log ends at {high}, before the range {wanted.start} to {wanted.end}",
            where=str(wanted),
            why=self._connection.redact(error.str()),
            fix="Check whether the topic was recreated or its leader lost records. Compare it with the table.",
        )

    def _silence(self) -> StorageError:
        said = self._reasons.why() or (self._waiting_for.str() if self._waiting_for is not None else None)
        return StorageError(
            f"Kafka sent nothing for {self._connection.timeout:g} s, at offset {self._position} of "
            f"{self._wanted.start} to {self._wanted.end}",
            where=str(self._wanted),
            why=None if said is None else self._connection.redact(said),
            fix="Check that this machine reaches the partition's leader, or raise timeout-seconds.",
        )


def expired(topic: str, bucket: str, start: int, end: int, earliest: int) -> OffsetsExpired:
    """The broker does not have ``start`` of ``bucket`` any more."""
    return OffsetsExpired(
        f"offsets {start} to {min(end, earliest)} of partition {bucket} are gone, of the range {start} to {end}",
        where=topic,
        why=f"the topic's retention deleted the records before {earliest}",
        fix="Keep records for longer than the time between rounds. To continue without them, set on-expired to skip.",
        gone={bucket: [(start, min(end, earliest))]},
    )
