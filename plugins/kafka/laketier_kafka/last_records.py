"""The records just before a position, by which a topic is told from what it was before it lost records. Driver."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any

from laketier.spi import StorageError
from laketier_kafka.connection import Connection, Reasons, naming_client_errors, refusal
from laketier_kafka.options import IsolationLevel

_WAIT = 0.1
"""Seconds for one wait; the broker's silence is counted over many."""


def stamp_of(connection: Connection, topic: str, ends: Mapping[int, int], isolation: IsolationLevel) -> str | None:
    """A digest of the record at ``end - 1`` of each partition. None where one of them holds none, as it expired, was
    compacted away, or is a transaction's marker: which of these it is nobody tells, and a digest of what is left would
    be another one later. Raises `StorageError`."""
    found = _records_at(connection, topic, {partition: end - 1 for partition, end in ends.items()}, isolation)
    if not found or any(record is None for record in found.values()):
        return None
    whole = hashlib.sha256()
    for partition, message in sorted(found.items()):
        parts = (message.key(), message.value())
        sizes = [-1 if part is None else len(part) for part in parts]
        whole.update(repr((partition, message.offset(), message.timestamp()[1], sizes)).encode())
        for part in parts:
            whole.update(part or b"")
    return whole.hexdigest()[:32]


def _records_at(
    connection: Connection, topic: str, offsets: Mapping[int, int], isolation: IsolationLevel
) -> dict[int, Any]:
    """The client's message at each offset, None where there is none. Ends at the first that is missing."""
    from confluent_kafka import Consumer, TopicPartition

    if not offsets:
        return {}
    reasons = Reasons()
    doing = "the records before a position were looked up"
    # One batch of each partition, however large: brokers send a first one whole.
    settings = {**connection.consumer_settings(isolation), "fetch.message.max.bytes": 1, "error_cb": reasons.remember}
    found: dict[int, Any] = {}
    with naming_client_errors(connection, doing, topic, reasons):
        consumer = Consumer(settings)
        try:
            consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in offsets.items()])
            heard = time.monotonic()
            while len(found) < len(offsets) and None not in found.values():
                for message in consumer.consume(len(offsets), _WAIT):
                    partition: Any = message.partition()
                    if message.error() is not None:
                        if _is_passing(connection, message.error(), doing, topic, reasons):
                            continue
                        found.setdefault(partition, None)
                    elif partition not in found:
                        found[partition] = message if message.offset() == offsets[partition] else None
                    heard = time.monotonic()
                if time.monotonic() - heard > connection.timeout:
                    why = reasons.why()
                    raise StorageError(
                        f"Kafka sent nothing for {connection.timeout:g} s while {doing}",
                        where=topic,
                        why=None if why is None else connection.redact(why),
                        fix="Check that this machine reaches the leaders of the topic, or raise timeout-seconds.",
                    )
        finally:
            consumer.close()
    return found


def _is_passing(connection: Connection, error: Any, doing: str, topic: str, reasons: Reasons) -> bool:
    """Whether the client tries again by itself. False where the log has no such offset."""
    from laketier_kafka import client_errors

    code = error.code()
    if code in (client_errors.PARTITION_EOF, client_errors.AUTO_OFFSET_RESET):
        return False
    if error.retriable() or code in (client_errors.TRANSPORT, client_errors.ALL_BROKERS_DOWN, client_errors.RESOLVE):
        return True
    raise refusal(connection, error, doing, topic, reasons)
