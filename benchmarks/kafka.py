"""``python -m benchmarks.kafka``: JSON records of a topic to Arrow, beside a plain consumer with `json.loads`.

The broker is a process of its own, and its work is not counted. CPU-seconds are those of the reading process, with the
client's own threads.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from laketier.registry import open_log_source
from laketier.spi import LogOffsets, LogRange

COLUMNS = {"id": "int64", "at": "timestamp[us, UTC]", "region": "string", "customer": "string", "amount": "float64"}
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.string()),
        ("region", pa.string()),
        ("customer", pa.string()),
        ("amount", pa.float64()),
    ]
)
_PARTITIONS = 16
"""The mock keeps 5 MiB of each, compressed."""


def record(number: int) -> bytes:
    """The value of a record."""
    row = {
        "id": number,
        "at": f"2024-05-01T10:{number // 60 % 60:02}:{number % 60:02}.{number % 1_000_000:06}Z",
        "region": f"region-{number % 24:02}",
        "customer": f"customer-{number * 7919 % 200_000:08}",
        "amount": number % 100_000 / 100,
    }
    return json.dumps(row, separators=(",", ":")).encode()


def fill(bootstrap: str, topic: str, rows: int, partitions: int) -> int:
    """Write the topic; how many bytes its values have."""
    settings = {
        "compression.type": "zstd",
        "linger.ms": 50,
        "batch.size": 1_000_000,
        "queue.buffering.max.kbytes": 65536,
    }
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    size = 0
    for number in range(rows):
        value = record(number)
        size += len(value)
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(120):
        raise RuntimeError("the broker did not take all records")
    return size


def _plain(bootstrap: str, topic: str) -> int:
    """What one would write without us: it decodes less, as times stay text."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "plain",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(_PARTITIONS)])
    rows = ended = 0
    while ended < _PARTITIONS:
        found = []
        for message in consumer.consume(10_000, 0.1):
            if message.error() is None:
                found.append(json.loads(message.value()))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended += 1
        rows += pa.Table.from_pylist(found, schema=SCHEMA).num_rows
    consumer.close()
    return rows


def _ours(bootstrap: str, topic: str) -> int:
    keys = {"bootstrap-servers": bootstrap}
    options = {"value-format": "json", **{f"columns.{name}": kind for name, kind in COLUMNS.items()}}
    log = open_log_source("kafka", keys, name="bench", origin="benchmarks").open(topic, options)
    bounds = log.bounds()
    wanted = LogRange(
        LogOffsets({bucket: bound.earliest for bucket, bound in bounds.items()}),
        LogOffsets({bucket: bound.latest for bucket, bound in bounds.items()}),
    )
    return sum(batch.num_rows for split in log.plan(wanted) for batch in log.read(split))


def main() -> None:
    """Fill a topic, read it in both ways in turn, print medians and ratios."""
    from laketier_kafka.mock_broker import KafkaBroker

    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    cases: dict[str, Callable[[str, str], int]] = {"laketier": _ours, "json.loads": _plain}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    with KafkaBroker() as broker:
        broker.create_topic("rows", _PARTITIONS)
        mebibytes = fill(broker.bootstrap, "rows", arguments.rows, _PARTITIONS) / 2**20
        for turn in range(arguments.repetitions + 1):
            for name, case in cases.items() if turn % 2 else reversed(cases.items()):
                wall, cpu = time.perf_counter(), time.process_time()
                rows = case(broker.bootstrap, "rows")
                if rows != arguments.rows:
                    raise RuntimeError(f"{name} read {rows:,} of {arguments.rows:,} rows")
                if turn:  # the first is not measured
                    taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    print(f"{arguments.rows:,} rows, {mebibytes:.0f} MiB of values, medians of {arguments.repetitions}")
    medians = {name: [statistics.median(column) for column in zip(*runs, strict=True)] for name, runs in taken.items()}
    for name, (wall, cpu) in medians.items():
        print(
            f"{name:12} {cpu:6.2f} CPU-s  {arguments.rows / cpu:10,.0f} rows/CPU-s {mebibytes / cpu:6.1f} MiB/CPU-s"
            f"   {wall:6.2f} s  {arguments.rows / wall:10,.0f} rows/s"
        )
    ours, plain = medians["laketier"], medians["json.loads"]
    print(f"of json.loads: {ours[1] / plain[1]:.2f} of the CPU, {ours[0] / plain[0]:.2f} of the time")


if __name__ == "__main__":
    main()
