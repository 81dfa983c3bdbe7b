"""The columns beside the value: key, headers, timestamp, partition, offset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.codecs.decoding import raise_if_nobodys
from laketier.codecs.said import said
from laketier.spi import BadRecord, ConfigError
from laketier_kafka.options import KafkaTableOptions

_HEADERS = pa.list_(pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]))
_SET_BY_PRODUCERS = ("headers", "timestamp")
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, in ms."""
_NONE = -1
"""What Kafka's protocol has for a record without a time."""
_NO_TIME = "is no time of the years 1 to 9999"
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


def unfit(
    wanted: Sequence[tuple[str, str]], messages: Sequence[Any]
) -> tuple[Mapping[int, str], Mapping[str, pa.Array]]:
    """The messages, by their place, whose producers set what no column holds: a time outside of the years that table
    formats know, a header whose key is no text. For each, why. And the columns that it took to find out, where all
    messages fit in."""
    found: dict[int, str] = {}
    made: dict[str, pa.Array] = {}
    for what, name in wanted:
        if what in _SET_BY_PRODUCERS:
            column = _search(what, name, messages, 0, found)
            if column is not None:
                made[what] = column
    return found, made


def _search(what: str, name: str, messages: Sequence[Any], first: int, found: dict[int, str]) -> pa.Array | None:
    """All at once, or else half by half, as `laketier.codecs.Decoder.decode` does."""
    try:
        column = record_column(what, messages)
        if what == "timestamp" and column.null_count < len(column):
            low, high = pc.min_max(column.cast(pa.int64())).as_py().values()
            if low < _FIRST or high > _LAST:
                raise ValueError(f"{high if high > _LAST else low} ms {_NO_TIME}")
    except Exception as error:  # noqa: BLE001 - the boundary: what a record makes a library raise is its own
        raise_if_nobodys(error)
        half = len(messages) // 2
        if half:
            _search(what, name, messages[:half], first, found)
            _search(what, name, messages[half:], first + half, found)
        else:
            found[first] = f"column {name!r}: {said(error)}"
        return None
    return column


def timestamp_of(message: Any) -> int | None:
    """Ms since the epoch, UTC; None where the broker keeps none, or the record says by -1 that it has none."""
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

    at: int
    kind, at = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE or at == _NONE else at


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


def _time_of(message: Any) -> int | None:
    """A dead letter keeps no time that no table has. Where the time was why its message is one, it still is none: a
    row without it would be another one than the message's."""
    if isinstance(message, StoredMessage) and message.record.at is None and _NO_TIME in message.record.error:
        raise ValueError(f"it {_NO_TIME}, and was not kept")
    return timestamp_of(message)


def _headers_of(message: Any) -> list[dict[str, Any]] | None:
    headers = message.headers()
    return None if headers is None else [{"key": key, "value": value} for key, value in headers]


_READERS: dict[str, Callable[[Any], Any]] = {
    "key": lambda message: message.key(),
    "headers": _headers_of,
    "timestamp": _time_of,
    "partition": lambda message: message.partition(),
    "offset": lambda message: message.offset(),
}
