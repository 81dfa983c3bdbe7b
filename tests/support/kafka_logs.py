"""What the tests of topics share: records in, rows out."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer

from laketier.registry import OpenSource, open_log_source
from laketier.spi import BadRecord, LogOffsets, LogRange, TableLog

Record = bytes | None | dict[str, Any]

_PRODUCE = 0
_TRANSACTIONAL = 0x10
_CONTROL = 0x20


def source_at(bootstrap: str, **options: Any) -> OpenSource:
    keys = {"bootstrap-servers": bootstrap, "timeout-seconds": 20, **options}
    return open_log_source("kafka", keys, name="events", origin="service.yaml")


def produce(bootstrap: str, topic: str, records: Iterable[Record], partition: int = 0, **settings: Any) -> None:
    """Values, or all that a producer takes of a record."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, **settings})
    for record in records:
        producer.produce(topic, partition=partition, **(record if isinstance(record, dict) else {"value": record}))
        producer.poll(0)
    assert producer.flush(20) == 0


def whole(log: TableLog) -> LogRange:
    bounds = log.bounds()
    return LogRange(
        LogOffsets({bucket: bound.earliest for bucket, bound in bounds.items()}),
        LogOffsets({bucket: bound.latest for bucket, bound in bounds.items()}),
    )


def read(log: TableLog, wanted: LogRange | None = None, **options: Any) -> pa.Table:
    batches = [batch for split in log.plan(wanted or whole(log)) for batch in log.read(split, **options)]
    assert all(batch.num_rows for batch in batches)
    if not batches:
        return log.table.schema.empty_table()
    return pa.Table.from_batches(batches)


def read_with_bad(log: TableLog) -> tuple[list[dict[str, Any]], list[BadRecord]]:
    bad: list[BadRecord] = []
    return read(log, on_bad_record=bad.append).to_pylist(), bad


def json_options(**columns: str) -> Mapping[str, str]:
    return {"value-format": "json", **{f"columns.{name}": kind for name, kind in columns.items()}}


def mark(bootstrap: str, topic: str, partition: int = 0) -> None:
    """The marker of a committed transaction, as brokers write one of their own: clients can produce none."""
    kind, coordinator = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 0)
    body = b"\0\0\0" + _varint(len(kind)) + kind + _varint(len(coordinator)) + coordinator + b"\0"
    record = _varint(len(body)) + body
    now = int(time.time() * 1000)
    checked = struct.pack(">hiqqqhii", _CONTROL | _TRANSACTIONAL, 0, now, now, 1, 0, -1, 1) + record
    rest = struct.pack(">ibI", 0, 2, _crc32c(checked)) + checked
    batch = struct.pack(">qi", 0, len(rest)) + rest
    name = struct.pack(">h", len(topic)) + topic.encode()
    asked = struct.pack(">hii", 1, 10_000, 1) + name + struct.pack(">iii", 1, partition, len(batch)) + batch
    head = struct.pack(">hhih", _PRODUCE, 7, 1, 4) + b"test" + struct.pack(">h", -1)
    host, port = bootstrap.split(":")
    with socket.create_connection((host, int(port)), 20) as link, link.makefile("rb") as answers:
        link.sendall(struct.pack(">i", len(head + asked)) + head + asked)
        answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    at = 4 + 4 + len(name) + 4 + 4
    assert struct.unpack_from(">h", answer, at) == (0,), answer


def _varint(number: int) -> bytes:
    """Of a number from 0 to 63."""
    return bytes([number * 2])


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
