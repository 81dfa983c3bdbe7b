"""The columns beside the value: key, headers, timestamp, partition, offset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from laketier.sources.kafka.options import KafkaTableOptions
from laketier.spi import BadRecord, ConfigError

_HEADERS = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]))
_TYPES = {
    "key": pa.binary(),
    "headers": _HEADERS,
    "timestamp": pa.timestamp("ms", "UTC"),
    "partition": pa.int32(),
    "offset": pa.int64(),
}


def record_columns(options: KafkaTableOptions, value: pa.Schema, where: str) -> tuple[tuple[str, str], ...]:
    """What the user asked for, as (what, column name). Raises `ConfigError` for a name that is taken."""
    wanted = tuple((what, getattr(options, f"{what}_column")) for what in _TYPES if getattr(options, f"include_{what}"))
    names = [*value.names, *(name for _, name in wanted)]
    taken = sorted({name for name in names if names.count(name) > 1})
    if taken:
        raise ConfigError(
            f"two columns are named {taken[0]!r}", where=where, fix="Give another name by key-column, offset-column, …"
        )
    return wanted


def with_record_columns(value: pa.Schema, wanted: Sequence[tuple[str, str]]) -> pa.Schema:
    """The table's schema."""
    return pa.schema([*value, *(pa.field(name, _TYPES[what]) for what, name in wanted)])


def record_column(what: str, messages: Sequence[Any]) -> pa.Array:
    """One of them, for the client's messages."""
    return pa.array([_READERS[what](message) for message in messages], _TYPES[what])


def timestamp_of(message: Any) -> int | None:
    """Ms since the epoch, UTC; None where the broker keeps none."""
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

    at: int
    kind, at = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else at


@dataclass(frozen=True)
class StoredMessage:
    """What a dead letter kept of a message, as the client would give it."""

    record: BadRecord

    def key(self) -> bytes | None:
        return self.record.key

    def value(self) -> bytes | None:
        return self.record.value

    def partition(self) -> int:
        return int(self.record.bucket)

    def offset(self) -> int:
        return self.record.offset

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE

        at = self.record.at
        return (TIMESTAMP_NOT_AVAILABLE, -1) if at is None else (TIMESTAMP_CREATE_TIME, at)


def _headers_of(message: Any) -> list[dict[str, Any]] | None:
    headers = message.headers()
    return None if headers is None else [{"key": key, "value": value} for key, value in headers]


_READERS: dict[str, Callable[[Any], Any]] = {
    "key": lambda message: message.key(),
    "headers": _headers_of,
    "timestamp": timestamp_of,
    "partition": lambda message: message.partition(),
    "offset": lambda message: message.offset(),
}
