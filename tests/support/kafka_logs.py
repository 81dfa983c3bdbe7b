"""What the tests of topics share: records in, rows out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer

from laketier.registry import OpenSource, open_log_source
from laketier.spi import BadRecord, LogOffsets, LogRange, TableLog

Record = bytes | None | dict[str, Any]


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
