"""The records just before a position, by which a topic is told from what it was before it lost records. Driver."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from laketier.spi import StorageError, joined_stamps
from laketier_kafka.connection import Connection, Reasons, naming_client_errors, refusal
from laketier_kafka.options import IsolationLevel

_WAIT = 0.1
"""Seconds for one wait; the broker's silence is counted over many."""
_MOST_MARKERS = 1024
"""Transactions that end together, as those of all tasks of a job do, leave their markers in a row."""

_GROUPS = 32
"""A stamp has an end: more partitions than that share digests."""

Extents = Callable[[Collection[int]], Mapping[int, tuple[int, int]] | None]
"""The first offset that partitions hold, and the one after the last. None where records may be missing in between."""


def stamp_of(connection: Connection, topic: str, ends: Mapping[int, int], extents: Extents) -> str | None:
    """Digests of the last records before the ends of partitions, as of a log whose buckets expire one by one.
    ``extents`` is asked where the offset before an end has none: if no compaction takes records away, that is a
    transaction's marker, and the record is further ahead. A partition has none where its record expired, or may have
    been compacted away: a digest of what is left would be another one later. Raises `StorageError`."""
    found = _last_records(connection, topic, ends, extents) if ends else {}
    groups: dict[str, list[int]] = {}
    for partition in sorted(ends):
        groups.setdefault(str(partition % _GROUPS), []).append(partition)
    return joined_stamps(
        {
            group: _digest([found[each] for each in partitions]) if found.keys() >= set(partitions) else None
            for group, partitions in groups.items()
        }
    )


def _digest(messages: Sequence[Any]) -> str:
    whole = hashlib.sha256()
    for message in messages:
        parts = (message.key(), message.value())
        sizes = [-1 if part is None else len(part) for part in parts]
        whole.update(repr((message.partition(), message.offset(), message.timestamp()[1], sizes)).encode())
        for part in parts:
            whole.update(part or b"")
    return whole.hexdigest()[:16]


def _last_records(connection: Connection, topic: str, ends: Mapping[int, int], extents: Extents) -> dict[int, Any]:
    """The client's last message before each end, where it is there. Looks at windows that reach ever further back: no
    more records are fetched than there are markers."""
    from confluent_kafka import Consumer

    reasons = Reasons()
    # What is before an end was decided: so a record of an aborted transaction tells a history as well as another.
    # One batch of each partition at a time, however large: brokers send a first one whole.
    settings = {
        **connection.consumer_settings(IsolationLevel.READ_UNCOMMITTED),
        "fetch.message.max.bytes": 1,
        "error_cb": reasons.remember,
    }
    found: dict[int, Any] = {}
    windows = {partition: (end - 1, end) for partition, end in ends.items()}
    bounds: Mapping[int, tuple[int, int]] | None = None
    width = 1
    with naming_client_errors(connection, _DOING, topic, reasons):
        consumer = Consumer(settings)
        try:
            looking = _Looking(connection, topic, consumer, reasons)
            while windows:
                last, outside = looking.last_in(windows)
                found |= last
                windows = {each: window for each, window in windows.items() if each not in last and each not in outside}
                bounds = bounds or (extents(windows) if windows else {})
                width *= 2
                if bounds is None or width > _MOST_MARKERS:
                    break
                windows = {
                    partition: (max(bounds[partition][0], ends[partition] - width), start)
                    for partition, (start, _) in windows.items()
                    if bounds[partition][0] < start and ends[partition] <= bounds[partition][1]
                }
        finally:
            consumer.close()
    return found


_DOING = "the records before a position were looked up"


class _Looking:
    def __init__(self, connection: Connection, topic: str, consumer: Any, reasons: Reasons) -> None:
        self._connection = connection
        self._topic = topic
        self._consumer = consumer
        self._reasons = reasons

    def last_in(self, windows: Mapping[int, tuple[int, int]]) -> tuple[dict[int, Any], set[int]]:
        """The last message in the window of each partition that has any there, and the partitions in which a window
        begins outside of what they hold."""
        from confluent_kafka import TopicPartition

        self._consumer.assign(
            [TopicPartition(self._topic, partition, start) for partition, (start, _) in windows.items()]
        )
        last: dict[int, Any] = {}
        outside: set[int] = set()
        left = {partition: end for partition, (_, end) in windows.items()}
        heard = time.monotonic()
        while left:
            before = len(left)
            for message in self._consumer.consume(len(left), _WAIT):
                partition = message.partition()
                if message.error() is not None:
                    if self._is_passing(message.error()):
                        continue
                    if not self._is_end(message.error()):
                        outside.add(partition)
                    left.pop(partition, None)
                elif partition in left:
                    if message.offset() < left[partition]:
                        last[partition] = message
                    if message.offset() >= left[partition] - 1:
                        del left[partition]
                heard = time.monotonic()
            # The client passes over a transaction's marker without a message; only its position tells.
            for place in self._consumer.position([TopicPartition(self._topic, partition) for partition in left]):
                if place.offset >= left[place.partition]:
                    del left[place.partition]
            if len(left) < before:
                heard = time.monotonic()
            if time.monotonic() - heard > self._connection.timeout:
                why = self._reasons.why()
                raise StorageError(
                    f"Kafka sent nothing for {self._connection.timeout:g} s while {_DOING}",
                    where=self._topic,
                    why=None if why is None else self._connection.redact(why),
                    fix="Check that this machine reaches the leaders of the topic, or raise timeout-seconds.",
                )
        return last, outside

    @staticmethod
    def _is_end(error: Any) -> bool:
        """Whether all that the partition holds was read. Otherwise the log has no such offset."""
        from laketier_kafka import client_errors

        return bool(error.code() == client_errors.PARTITION_EOF)

    def _is_passing(self, error: Any) -> bool:
        """Whether the client tries again by itself."""
        from laketier_kafka import client_errors

        code = error.code()
        if code in (client_errors.PARTITION_EOF, client_errors.AUTO_OFFSET_RESET):
            return False
        passing = (client_errors.TRANSPORT, client_errors.ALL_BROKERS_DOWN, client_errors.RESOLVE)
        if error.retriable() or code in passing:
            return True
        raise refusal(self._connection, error, _DOING, self._topic, self._reasons)
