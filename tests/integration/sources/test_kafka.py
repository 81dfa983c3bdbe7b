"""Topics as logs, against a broker in a process of its own."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from kafka_logs import json_options, produce, read, read_with_bad, source_at, whole
from laketier.spi import (
    BadRecord,
    BucketBounds,
    ConfigError,
    IncompatibleData,
    LogOffsets,
    LogRange,
    LogSplit,
    OffsetsExpired,
    StorageError,
    TableChanged,
    TableNotFound,
)
from laketier_kafka.mock_broker import KafkaBroker

RAW = {"value-format": "raw"}


def test_topics_are_tables_and_partitions_buckets(broker: KafkaBroker, topic: str) -> None:
    source = source_at(broker.bootstrap)
    assert topic in source.source.list_tables()
    log = source.open(topic, RAW)
    assert log.bounds() == {"0": BucketBounds(0, 0), "1": BucketBounds(0, 0)}
    produce(broker.bootstrap, topic, [b"a", b"b"], partition=1)
    assert log.bounds() == {"0": BucketBounds(0, 0), "1": BucketBounds(0, 2)}
    assert log.table.name == topic
    assert log.table.schema == pa.schema([("value", pa.binary())])


def test_a_range_is_read_and_no_more(broker: KafkaBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [b"%d" % number for number in range(100)])
    log = source_at(broker.bootstrap).open(topic, RAW | {"include-offset": True})
    rows = read(log, LogRange(LogOffsets({"0": 10}), LogOffsets({"0": 25}))).to_pydict()
    assert rows == {"value": [b"%d" % n for n in range(10, 25)], "_offset": list(range(10, 25))}


def test_splits_cover_a_range_once(broker: KafkaBroker, topic: str) -> None:
    for partition, count in ((0, 100), (1, 37)):
        produce(broker.bootstrap, topic, [b"%d" % number for number in range(count)], partition=partition)
    log = source_at(broker.bootstrap).open(topic, RAW | {"split-offsets": 30})
    splits = log.plan(whole(log))
    assert [(split.bucket, split.start, split.end) for split in splits] == [
        ("0", 0, 25),
        ("0", 25, 50),
        ("0", 50, 75),
        ("0", 75, 100),
        ("1", 0, 18),
        ("1", 18, 37),
    ]
    assert read(log).column("value").to_pylist() == [b"%d" % n for count in (100, 37) for n in range(count)]
    assert list(log.plan(LogRange(LogOffsets({"0": 7, "1": 5}), LogOffsets({"0": 7, "1": 6})))) == [
        LogSplit(bucket="1", start=5, end=6)
    ]
    assert log.plan(LogRange(LogOffsets({"0": 7}), LogOffsets({"0": 7}))) == ()


def test_markers_of_transactions_do_not_stall_a_range(broker: KafkaBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(20)
    for start in (0, 5):
        producer.begin_transaction()
        for number in range(start, start + 5):
            producer.produce(topic, b"%d" % number, partition=0)
        producer.commit_transaction(20)
    # The markers that this broker makes have no checksum.
    source = source_at(broker.bootstrap, **{"client.check.crcs": "false"})
    log = source.open(topic, RAW | {"include-offset": True, "split-offsets": 6})
    assert log.bounds()["0"].latest == 12
    assert [(split.start, split.end) for split in log.plan(whole(log))] == [(0, 6), (6, 12)]
    rows = read(log).to_pydict()
    assert rows["value"] == [b"%d" % number for number in range(10)]
    assert rows["_offset"] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    for marker in (5, 11):  # nothing but a marker
        assert list(log.read(LogSplit(bucket="0", start=marker, end=marker + 1))) == []


def test_what_belongs_to_a_record_can_be_columns(broker: KafkaBroker, topic: str) -> None:
    first = {
        "value": b'{"id":1}',
        "key": b"k",
        "headers": [("a", b"\xff"), ("a", None)],
        "timestamp": 1_700_000_000_123,
    }
    second = {"value": b'{"id":2}', "timestamp": 1_700_000_000_456}
    bad = {"value": b"{", "key": b"z", "timestamp": 1_700_000_000_789}
    produce(broker.bootstrap, topic, [first, bad, second], partition=1)
    wanted = {f"include-{what}": "true" for what in ("key", "headers", "timestamp", "partition", "offset")}
    log = source_at(broker.bootstrap).open(topic, {**json_options(id="int64"), **wanted, "key-column": "the_key"})
    rows, refused = read_with_bad(log)
    assert [list(row) for row in rows] == [log.table.schema.names] * 2
    assert log.table.schema.names == ["id", "the_key", "_headers", "_timestamp", "_partition", "_offset"]
    assert [(row["id"], row["the_key"], row["_partition"], row["_offset"]) for row in rows] == [
        (1, b"k", 1, 0),
        (2, None, 1, 2),
    ]
    assert rows[0]["_headers"] == [{"key": "a", "value": b"\xff"}, {"key": "a", "value": None}]
    assert [row["_timestamp"].timestamp() for row in rows] == [1_700_000_000.123, 1_700_000_000.456]
    assert refused[0] == BadRecord(
        bucket="1", offset=1, error=refused[0].error, value=b"{", key=b"z", at=1_700_000_000_789
    )


def test_columns_are_given_as_asked(broker: KafkaBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [b'{"a":1,"b":"x"}', b'{"a":"no","b":"y"}'])
    log = source_at(broker.bootstrap).open(topic, {**json_options(a="int64", b="string"), "include-offset": True})

    def ignore(record: BadRecord) -> None:
        return

    assert read(log, columns=["_offset", "b"], on_bad_record=ignore).to_pydict() == {"_offset": [0], "b": ["x"]}
    counted = [batch for split in log.plan(whole(log)) for batch in log.read(split, columns=[], on_bad_record=ignore)]
    assert [(batch.num_rows, batch.num_columns) for batch in counted] == [(1, 0)]
    with pytest.raises(ConfigError, match=r"no columns \['c'\]\. It has a, b, _offset"):
        read(log, columns=["c"])


def test_bad_records_come_whole_and_in_order(broker: KafkaBroker, topic: str) -> None:
    values = [b'{"id":1}', None, b"", b'{"id":"x"}', b'{"id":2}{"id":3}', b"[1]", b'{"id":\n4}', b"\x00\xff"]
    produce(broker.bootstrap, topic, values)
    rows, bad = read_with_bad(source_at(broker.bootstrap).open(topic, json_options(id="int64")))
    assert rows == [{"id": 1}, {"id": 4}]
    assert [(record.offset, record.value) for record in bad] == [(n, values[n]) for n in (1, 2, 3, 4, 5, 7)]
    assert [record.error.partition(";")[0] for record in bad] == [
        "it has no value (a tombstone)",
        "the value is empty",
        "JSON parse error: Column(/id) changed from number to string",
        "the value is not JSON: Extra data: line 1 column 9 (char 8)",
        "the value is not a JSON object",
        "the value is not a JSON object",
    ]


def test_the_first_bad_record_stops_a_table_by_default(broker: KafkaBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [b'{"id":1}', b"oops"])
    log = source_at(broker.bootstrap).open(topic, json_options(id="int64"))
    with pytest.raises(
        IncompatibleData, match=r"offset 1 of bucket '0' can't be read, because the value is not a JSON"
    ):
        read(log)


def test_tombstones_are_passed_over_when_the_user_says_so(broker: KafkaBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [None, b'{"id":1}', None])
    log = source_at(broker.bootstrap).open(topic, {**json_options(id="int64"), "tombstones": "skip"})
    assert read_with_bad(log) == ([{"id": 1}], [])
    raw = source_at(broker.bootstrap).open(topic, RAW)
    assert read(raw).column("value").to_pylist() == [None, b'{"id":1}', None]


def test_arrow_values_hold_any_number_of_rows(broker: KafkaBroker, topic: str) -> None:
    def ipc(table: pa.Table, opener: Any) -> bytes:
        sink = pa.BufferOutputStream()
        with opener(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    two = pa.table({"id": pa.array([1, 2], pa.int32())})
    other = pa.table({"x": [1]})
    values = [
        ipc(two, pa.ipc.new_stream),
        ipc(two.slice(0, 0), pa.ipc.new_file),
        b"no arrow",
        ipc(other, pa.ipc.new_file),
    ]
    produce(broker.bootstrap, topic, [*values, ipc(two, pa.ipc.new_file)])
    log = source_at(broker.bootstrap).open(
        topic, {"value-format": "arrow-ipc", "columns.id": "int64", "include-offset": True}
    )
    rows, bad = read_with_bad(log)
    assert rows == [{"id": 1, "_offset": 0}, {"id": 2, "_offset": 0}, {"id": 1, "_offset": 4}, {"id": 2, "_offset": 4}]
    assert [record.offset for record in bad] == [2, 3]


def test_a_log_goes_to_an_executor(broker: KafkaBroker, topic: str) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle", reason="executors are Spark's")
    produce(broker.bootstrap, topic, [b'{"id":%d}' % number for number in range(5)])
    log = source_at(broker.bootstrap).open(topic, json_options(id="int64"))
    split = log.plan(whole(log))[0]
    assert cloudpickle.loads(cloudpickle.dumps(log)).bounds() == log.bounds()
    code = (
        "import pickle,sys; log, split = pickle.load(sys.stdin.buffer); print([b.to_pydict() for b in log.read(split)])"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, input=pickle.dumps((log, split)), capture_output=True, check=True, timeout=60)
    assert done.stdout.decode().strip() == "[{'id': [0, 1, 2, 3, 4]}]"
    assert done.stderr == b""


def test_what_retention_took_is_told_with_its_range(broker: KafkaBroker, topic: str) -> None:
    for number in range(10):
        produce(broker.bootstrap, topic, [b"%d" % number])
    log = source_at(broker.bootstrap).open(topic, RAW)
    wanted = whole(log)
    split = log.plan(wanted)[0]
    broker.delete_records(topic, 0, 4)
    assert log.bounds()["0"] == BucketBounds(4, 10)
    told = rf"{topic}: offsets 0 to 4 of partition 0 are gone, of the range 0 to 10, because the topic's retention"
    with pytest.raises(OffsetsExpired, match=told):
        log.plan(wanted)
    with pytest.raises(OffsetsExpired, match=told):  # what expires after it was planned
        list(log.read(split))
    assert read(log).column("value").to_pylist() == [b"%d" % number for number in range(4, 10)]


def test_a_topic_made_again_is_another_table(broker: KafkaBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, [b"old"] * 5)
    source = source_at(broker.bootstrap)
    log = source.open(topic, RAW)
    wanted = whole(log)
    broker.delete_topic(topic)
    with pytest.raises(TableNotFound, match=f"no topic '{topic}'"):
        log.bounds()
    broker.create_topic(topic, 1)
    assert source.open(topic, RAW).table.table_id != log.table.table_id
    for ask in (log.bounds, lambda: log.plan(wanted)):
        with pytest.raises(TableChanged, match=r"was deleted and recreated, because its id is"):
            ask()
    again = source.open(topic, RAW)
    with pytest.raises(StorageError, match="has no partitions 1"):
        again.plan(LogRange(LogOffsets({"1": 0}), LogOffsets({"1": 5})))
    with pytest.raises(StorageError, match="ends at 0, before the range 0 to 5"):
        again.plan(LogRange(LogOffsets({"0": 0}), LogOffsets({"0": 5})))
    with pytest.raises(StorageError, match="the log ends at 0, before the range 3 to 5"):
        list(again.read(LogSplit(bucket="0", start=3, end=5)))
    impatient = source_at(broker.bootstrap, **{"timeout-seconds": 2}).open(topic, RAW)
    with pytest.raises(StorageError, match=r"sent nothing for 2 s, at offset 0 of 0 to 5, because .* reached end"):
        list(impatient.read(LogSplit(bucket="0", start=0, end=5)))


def test_a_broker_that_is_away_stops_a_read_and_one_that_is_back_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laketier_kafka.records._CHUNK_RECORDS", 500)
    with KafkaBroker() as broker:
        broker.create_topic("t", 1)
        values = [random.Random(number).randbytes(1000) for number in range(4000)]
        produce(broker.bootstrap, "t", values)
        small = {"client.fetch.max.bytes": 20_000, "client.queued.max.messages.kbytes": 20}
        small["client.message.max.bytes"] = 20_000
        impatient = source_at(broker.bootstrap, **small, **{"timeout-seconds": 1}).open("t", RAW)
        patient = source_at(broker.bootstrap, **small).open("t", RAW)
        split = impatient.plan(whole(impatient))[0]
        broker.down()
        for call in (impatient.bounds, lambda: list(impatient.read(split))):
            with pytest.raises(StorageError, match=r"t.*(Connection refused|Disconnected|timed out)"):
                call()
        broker.up()
        rows: list[bytes] = []
        reading = patient.read(split)
        rows.extend(next(reading).column(0).to_pylist())
        assert len(rows) < 1_000  # the rest is still to be fetched
        broker.down()
        broker.up()
        for batch in reading:
            rows.extend(batch.column(0).to_pylist())
        assert rows == values


def test_many_records_of_all_shapes(broker: KafkaBroker, topic: str) -> None:
    chance = random.Random(5)
    rows = [{"id": number, "s": "é" * chance.randrange(20), "n": {"x": [chance.random()]}} for number in range(20_000)]
    values = [json.dumps(row, indent=chance.choice([None, 1])).encode() for row in rows]
    for partition in (0, 1):
        produce(broker.bootstrap, topic, values[partition::2], partition=partition, **{"compression.type": "zstd"})
    options = {**json_options(id="int64", s="string", n="struct<x: list<double>>"), "split-offsets": 3_000}
    found = read(source_at(broker.bootstrap).open(topic, options)).to_pylist()
    assert found == rows[0::2] + rows[1::2]


def test_a_record_without_a_time_has_none(broker: KafkaBroker, topic: str) -> None:
    """It says so by -1, and was a moment before 1970."""
    produce(broker.bootstrap, topic, [{"value": b'{"id":1}', "timestamp": -1}, {"value": b"{", "timestamp": -1}])
    log = source_at(broker.bootstrap).open(topic, {**json_options(id="int64"), "include-timestamp": "true"})
    rows, bad = read_with_bad(log)
    assert rows == [{"id": 1, "_timestamp": None}]
    assert [record.at for record in bad] == [None]
