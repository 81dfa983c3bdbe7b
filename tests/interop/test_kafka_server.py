"""Topics of a real Apache Kafka, for what the mock does not do: aborted and open transactions, compaction, retention.

Runs where KAFKA_LIBS names a folder with the broker's jars (org.apache.kafka:kafka_2.13 and what it needs).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kafka_logs import produce, read, source_at, whole
from laketier.config import LakeConfig
from laketier.rounds import LogRound, LogRoundSettings
from laketier.rounds.log_engine import LocalEngine
from laketier.spi import LogOffsets, LogRange, LogSplit, OffsetsExpired, OffsetsRewritten, StorageError, TableChanged
from laketier_verification.kafka_server import KafkaServer
from laketier_verification.lakes import lake_at

LIBS = os.environ.get("KAFKA_LIBS")
pytestmark = pytest.mark.skipif(LIBS is None, reason="KAFKA_LIBS names no folder with Kafka's jars")

RAW = {"value-format": "raw", "include-offset": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    assert LIBS is not None
    started = KafkaServer(LIBS, tmp_path_factory.mktemp("kafka"))
    yield started
    started.kill()


def transact(server: KafkaServer, topic: str, ends: list[bool | None]) -> Producer:
    """A transaction of five records for each: committed, aborted, or (None) left open."""
    producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for turn, commit in enumerate(ends):
        producer.begin_transaction()
        for number in range(5):
            producer.produce(topic, b"%d" % (turn * 5 + number), b"key")
        producer.flush(30)
        if commit is not None:
            (producer.commit_transaction if commit else producer.abort_transaction)(30)
    return producer


def test_aborted_and_open_transactions(server: KafkaServer) -> None:
    topic = server.create("transactions")
    producer = transact(server, topic, [True, False, True, False, None])
    source = source_at(server.bootstrap)
    log = source.open(topic, RAW)
    # Four transactions with their markers; the open one does not count.
    assert (log.bounds()["0"].earliest, log.bounds()["0"].latest) == (0, 24)
    committed = [b"%d" % number for number in (*range(5), *range(10, 15))]
    assert read(log).to_pydict() == {"value": committed, "_offset": [*range(5), *range(12, 17)]}
    for start in range(24):
        for end in range(start + 1, 25):
            rows = read_split(log, start, end)
            assert rows == [offset for offset in (*range(5), *range(12, 17)) if start <= offset < end], (start, end)
    everything = source.open(topic, {**RAW, "isolation-level": "read_uncommitted"})
    assert everything.bounds()["0"].latest == 29
    assert everything.bounds()["0"].latest_at is not None
    assert read(everything).num_rows == 25
    producer.abort_transaction(30)
    # An abort is answered before its marker is written; the first record of the next transaction waits for it.
    producer.begin_transaction()
    producer.produce(topic, b"25", b"key")
    producer.flush(30)
    assert log.bounds()["0"].latest == 30
    assert read(log).num_rows == 10


def read_split(log: object, start: int, end: int) -> list[int]:
    batches = log.read(LogSplit(bucket="0", start=start, end=end))  # type: ignore[attr-defined]
    return [offset for batch in batches for offset in batch.column("_offset").to_pylist()]


def test_what_compaction_took_leaves_gaps_and_nothing_waits_for_them(server: KafkaServer) -> None:
    topic = server.create(
        "compacted",
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.001",
        min_compaction_lag_ms="0",
    )
    for turn in range(20):
        produce(server.bootstrap, topic, [{"key": b"%d" % (n % 3), "value": b"%d" % turn} for n in range(10)])
    log = source_at(server.bootstrap).open(topic, RAW)
    deadline = time.monotonic() + 60
    while len(read_split(log, 0, 190)) > 10:
        assert time.monotonic() < deadline, "the cleaner did not run"
        produce(server.bootstrap, topic, [{"key": b"x", "value": b"y"}])  # rolls the segment
    for start, end in ((0, 1), (0, 100), (50, 60), (150, 187)):
        # The cleaner may go on meanwhile: what is read lies between what was there before and what is there after.
        before, rows, after = read_split(log, 0, 190), read_split(log, start, end), read_split(log, 0, 190)
        assert {offset for offset in after if start <= offset < end} <= set(rows)
        assert set(rows) <= {offset for offset in before if start <= offset < end}
        assert rows == sorted(set(rows))


def test_what_retention_took(server: KafkaServer) -> None:
    topic = server.create("short", retention_ms="1", segment_ms="100")
    produce(server.bootstrap, topic, [b"a"] * 10)
    log = source_at(server.bootstrap).open(topic, RAW)
    # Not `whole(log)`: retention may be sooner than that look.
    wanted = LogRange(LogOffsets({"0": 0}), LogOffsets({"0": 10}))
    deadline = time.monotonic() + 60
    while log.bounds()["0"].earliest < 10:
        assert time.monotonic() < deadline, "retention did not run"
        produce(server.bootstrap, topic, [b"b"])
    for ask in (lambda: log.plan(wanted), lambda: read_split(log, 0, 10)):
        with pytest.raises(OffsetsExpired, match="of partition 0 are gone"):
            ask()


def test_a_topic_of_transactions_that_lost_records_and_grew_again_stops_its_table(
    server: KafkaServer, tmp_path: Path
) -> None:
    """All ends of such a topic are markers: no stamp was taken there, and its table skipped what came anew."""
    topic = server.create("elected")
    lake = lake_at(tmp_path, "localfile", "db.t", lake__pipeline="tests.events.t")
    transact(server, topic, [True, True, False])
    assert tier(server, topic, lake.config) == 10
    transact(server, topic, [True])
    assert tier(server, topic, lake.config) == 5, "the log has the history that was read"
    server.kill()
    server.cut(topic, 6)
    server.start()
    with pytest.raises(TableChanged, match="lost its newest records"):
        tier(server, topic, lake.config)
    transact(server, topic, [False, True, True, True])
    with pytest.raises(OffsetsRewritten, match="other records before"):
        tier(server, topic, lake.config)


def tier(server: KafkaServer, topic: str, config: LakeConfig) -> int:
    """The rows of one round."""
    engine = LocalEngine(1)
    with closing(engine):
        made = LogRound(source_at(server.bootstrap).open(topic, RAW), config, LogRoundSettings())
        return made.finish(engine.run(made.plan())).rows


def test_the_stamp_of_transactions_is_that_of_their_last_record_unless_it_may_be_compacted_away(
    server: KafkaServer,
) -> None:
    kept, compacted = server.create("kept"), server.create("cleaned", cleanup_policy="compact,delete")
    for topic in (kept, compacted):
        produce(server.bootstrap, topic, [{"key": b"k", "value": b"%d" % number} for number in range(3)])
        transact(server, topic, [True, False])
    log, cleaned = (source_at(server.bootstrap).open(topic, RAW) for topic in (kept, compacted))
    stamps = [log.stamp(LogOffsets({"0": end})) for end in range(1, 16)]
    assert None not in stamps
    assert len(set(stamps)) == 13, "the two markers end what the records before them end"
    assert stamps[8] == stamps[7]
    assert stamps[14] == stamps[13]
    assert [end for end in range(1, 16) if cleaned.stamp(LogOffsets({"0": end})) is None] == [9, 15]


def test_a_server_killed_and_started_again_in_mid_read(server: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laketier_kafka.records._CHUNK_RECORDS", 1_000)
    topic = server.create("restarted")
    values = [b"%d" % number * 100 for number in range(20_000)]
    produce(server.bootstrap, topic, values)
    small = {
        "client.fetch.max.bytes": 50_000,
        "client.queued.max.messages.kbytes": 50,
        "client.message.max.bytes": 50_000,
    }
    log = source_at(server.bootstrap, **small, **{"timeout-seconds": 60}).open(topic, RAW)
    split = log.plan(whole(log))[0]
    reading = log.read(split)
    rows = next(reading).column("value").to_pylist()
    server.kill()
    impatient = source_at(server.bootstrap, **{"timeout-seconds": 1})
    with pytest.raises(StorageError, match="Connection refused"):
        impatient.open(topic, RAW)
    server.start()
    for batch in reading:
        rows.extend(batch.column("value").to_pylist())
    assert rows == values
