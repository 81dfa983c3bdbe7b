"""A topic that lost its newest records, or was made again, gives their offsets to other records."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import KafkaError

import laketier
from kafka_logs import json_options, mark, produce, read, source_at
from laketier.config import LakeConfig
from laketier.rounds import LogRound, LogRoundResult, LogRoundSettings
from laketier.rounds.log_engine import LocalEngine
from laketier.service.schedule import is_retryable
from laketier.spi import LogOffsets, OffsetsRewritten, StorageError, TableChanged, TableNotFound
from laketier.union_read.planning import plan_union
from laketier_kafka.cluster import Asked, Cluster, Topic
from laketier_kafka.connection import Connection
from laketier_kafka.last_records import Extents, stamp_of
from laketier_kafka.mock_broker import KafkaBroker
from laketier_kafka.options import IsolationLevel, KafkaOptions
from laketier_verification.lakes import ids, lake_at


@pytest.fixture
def nameless() -> Iterator[KafkaBroker]:
    """A broker that tells no ids of topics: another topic of a name looks like one that lost its records."""
    with KafkaBroker(topic_ids=False) as broker:
        yield broker


def value(number: int) -> bytes:
    return b'{"id":%d}' % number


def round_of(broker: KafkaBroker, config: LakeConfig, engine: LocalEngine) -> LogRoundResult:
    log = source_at(broker.bootstrap).open("t", json_options(id="int64"))
    made = LogRound(log, config, LogRoundSettings())
    return made.finish(engine.run(made.plan()))


def test_a_topic_that_lost_records_and_grew_again_stops_its_table(
    nameless: KafkaBroker, tmp_path: Path, engine: LocalEngine
) -> None:
    lake = lake_at(tmp_path, "localfile", "db.t", lake__pipeline="tests.events.t")
    nameless.create_topic("t", 2)
    produce(nameless.bootstrap, "t", map(value, range(3)))
    round_of(nameless, lake.config, engine)
    produce(nameless.bootstrap, "t", map(value, range(3, 5)))
    produce(nameless.bootstrap, "t", map(value, range(5, 7)), partition=1)
    round_of(nameless, lake.config, engine)
    assert ids(lake) == list(range(7)), "the log has the history that was read"
    nameless.delete_topic("t")
    nameless.create_topic("t", 2)
    produce(nameless.bootstrap, "t", map(value, range(3)))
    with pytest.raises(TableChanged, match="lost its newest records"):
        round_of(nameless, lake.config, engine)
    produce(nameless.bootstrap, "t", map(value, range(10, 16)))
    produce(nameless.bootstrap, "t", map(value, range(20, 23)), partition=1)
    with pytest.raises(OffsetsRewritten, match="other records before"):
        round_of(nameless, lake.config, engine)
    assert ids(lake) == list(range(7))


def test_a_topic_that_was_made_again_with_fewer_partitions_stops_its_table(
    nameless: KafkaBroker, tmp_path: Path, engine: LocalEngine
) -> None:
    """The client waits for a partition that it does not find, and called the broker silent."""
    lake = lake_at(tmp_path, "localfile", "db.t", lake__pipeline="tests.events.t")
    nameless.create_topic("t", 2)
    for partition in range(2):
        produce(nameless.bootstrap, "t", [value(partition)], partition)
    round_of(nameless, lake.config, engine)
    nameless.delete_topic("t")
    nameless.create_topic("t", 1)
    produce(nameless.bootstrap, "t", map(value, range(5, 8)))
    with pytest.raises(TableChanged, match="no partitions 1 any more"):
        round_of(nameless, lake.config, engine)
    assert ids(lake) == [0, 1]


def test_a_partition_whose_records_expired_hides_no_rewrite_of_another(
    nameless: KafkaBroker, tmp_path: Path, engine: LocalEngine
) -> None:
    """Nobody writes to it, and each round found no record before its end: so no round had a stamp."""
    lake = lake_at(tmp_path, "localfile", "db.t", lake__pipeline="tests.events.t")

    nameless.create_topic("t", 2)
    produce(nameless.bootstrap, "t", map(value, range(2)), partition=1)
    produce(nameless.bootstrap, "t", map(value, range(2, 4)))
    round_of(nameless, lake.config, engine)
    nameless.delete_records("t", 1, 2)
    for number in (4, 5):
        produce(nameless.bootstrap, "t", [value(number)])
        round_of(nameless, lake.config, engine)
    assert ids(lake) == list(range(6)), "what expired after it was read is no other history"
    nameless.delete_topic("t")
    nameless.create_topic("t", 2)
    produce(nameless.bootstrap, "t", map(value, range(10, 12)), partition=1)
    nameless.delete_records("t", 1, 2)
    produce(nameless.bootstrap, "t", map(value, range(20, 26)))
    with pytest.raises(OffsetsRewritten, match="other records before"):
        round_of(nameless, lake.config, engine)


def test_a_cluster_between_two_controllers_has_made_no_topic_again(
    broker: KafkaBroker, tmp_path: Path, engine: LocalEngine
) -> None:
    """Nobody tells ids of topics then. Its table was told to be another one by the name, and stopped for good."""
    lake = lake_at(tmp_path, "localfile", "db.t", lake__pipeline="tests.events.t")
    broker.create_topic("elected", 1)
    source = source_at(broker.bootstrap)
    for number in range(2):
        produce(broker.bootstrap, "elected", [value(number)])
        log = source.open("elected", json_options(id="int64"))
        made = LogRound(log, lake.config, LogRoundSettings())
        broker.lose_controller()
        elsewhere = pickle.loads(pickle.dumps(log))  # noqa: S301 - as Spark does
        for asked in (made.plan, lambda: source.open("elected", json_options(id="int64")), elsewhere.identify):
            with pytest.raises(StorageError, match="no controller") as told:
                asked()
            assert is_retryable(told.value)
        broker.elect_controller()
        made.finish(engine.run(made.plan()))
    assert ids(lake) == [0, 1]


@pytest.mark.parametrize("error", ["NOT_LEADER_FOR_PARTITION", "UNKNOWN_LEADER_EPOCH", "UNKNOWN_TOPIC_OR_PART"])
def test_ends_are_asked_for_again_while_a_leader_is_elected(broker: KafkaBroker, error: str) -> None:
    """Each ended a job that runs once, and the last told of a topic that is gone."""
    produce(broker.bootstrap, error.lower(), [value(0)])
    log = source_at(broker.bootstrap).open(error.lower(), json_options(id="int64"))
    broker.refuse_offsets(getattr(KafkaError, error), 2)
    assert log.bounds()["0"].latest == 1


def test_a_client_that_found_no_leader_finds_the_one_that_is_elected(broker: KafkaBroker) -> None:
    """It keeps what it was told of leaders, and asked no broker again."""
    broker.create_topic("led", 1)
    cluster, patient = (Cluster(Connection(broker.bootstrap, seconds)) for seconds in (0.1, 20.0))
    asked = ("led", [0], Asked.LATEST, IsolationLevel.READ_COMMITTED)
    assert patient.offsets(*asked)[0].offset == 0
    broker.lose_leader("led", 0)
    with pytest.raises(StorageError, match="look at the leaders of this topic") as told:
        cluster.offsets(*asked)
    assert is_retryable(told.value)
    patient.topic("led")  # it is told now that there is no leader
    broker.elect_leader("led", 0)
    assert patient.offsets(*asked)[0].offset == 0
    broker.lose_leader("led", 0)
    patient.topic("led")
    broker.delete_topic("led")
    with pytest.raises(TableNotFound, match="no topic 'led'"):
        patient.offsets(*asked)


def test_a_topic_that_the_cluster_lists_is_not_gone(broker: KafkaBroker) -> None:
    broker.create_topic("listed", 1)
    log = source_at(broker.bootstrap, **{"timeout-seconds": 1}).open("listed", json_options(id="int64"))
    broker.refuse_offsets(KafkaError.UNKNOWN_TOPIC_OR_PART, 100)
    with pytest.raises(StorageError, match="a partition that the cluster has") as told:
        log.bounds()
    assert is_retryable(told.value)
    broker.refuse_offsets(KafkaError.UNKNOWN_TOPIC_OR_PART, 0)
    assert log.bounds()["0"].latest == 0


def test_who_begins_while_a_cluster_has_no_controller_takes_no_name_for_an_id(broker: KafkaBroker) -> None:
    """A process that knows no id yet: a service that began then took each of its topics for another one, for good."""
    broker.create_topic("unnamed", 1)
    known = source_at(broker.bootstrap).open("unnamed", json_options(id="int64")).table.table_id
    broker.lose_controller()
    with pytest.raises(StorageError, match="no controller") as told:
        source_at(broker.bootstrap).open("unnamed", json_options(id="int64"))
    assert is_retryable(told.value)
    broker.elect_controller()
    assert source_at(broker.bootstrap).open("unnamed", json_options(id="int64")).table.table_id == known != "unnamed"


def test_a_task_compares_no_id_with_the_name_that_a_log_was_opened_by(nameless: KafkaBroker) -> None:
    nameless.create_topic("unnamed", 1)
    log = source_at(nameless.bootstrap).open("unnamed", json_options(id="int64"))
    elsewhere = pickle.loads(pickle.dumps(log))  # noqa: S301 - as Spark does
    assert elsewhere.identify() == log.table.table_id == "unnamed"
    nameless.delete_topic("unnamed")
    with pytest.raises(TableNotFound):
        elsewhere.identify()


def test_a_union_read_tells_a_topic_that_was_made_again_meanwhile(
    broker: KafkaBroker, nameless: KafkaBroker, tmp_path: Path
) -> None:
    """Its splits are read by name, one after the other: rows of both topics came as one table."""
    for each, kind in ((broker, TableChanged), (nameless, OffsetsRewritten)):
        file = tmp_path / f"{kind.__name__}.yaml"
        file.write_text(f"""
name: tests
state: "sqlite:///{tmp_path}/state.db"
sources: {{events: {{type: kafka, options: {{bootstrap-servers: "{each.bootstrap}", timeout-seconds: 20}}}}}}
defaults: {{sink: {{lake.format: localfile, lake.warehouse: {tmp_path}/lake-{kind.__name__}}}}}
tables: [{{source: events, include: [again], target: db.t, read: {{value-format: json, columns.id: int64}}}}]
""")

        def made(topic: int, each: KafkaBroker = each) -> None:
            each.create_topic("again", 2)
            for partition in range(2):
                produce(each.bootstrap, "again", [value(10 * topic + partition)] * 3, partition)

        made(1)
        assert (
            laketier.read_union("events.again", service=str(file)).read_all()["id"].to_pylist() == [10] * 3 + [11] * 3
        )
        rows = laketier.read_union("events.again", service=str(file))
        seen = rows.read_next_batch()["id"].to_pylist()
        each.delete_topic("again")
        made(2)
        with pytest.raises(kind, match=r"while it was read.* Throw away what was read"):
            seen += rows.read_all()["id"].to_pylist()
        assert seen == [10] * 3


def test_a_task_of_a_union_read_looks_before_its_first_rows_and_longer_than_a_moment(
    broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query with a limit ends its tasks after their first rows. And an engine that runs a task once fails with it."""
    lake = lake_at(tmp_path, "localfile", "db.t", lake__pipeline="tests.events.t")
    broker.create_topic("limited", 1)
    produce(broker.bootstrap, "limited", map(value, range(3)))
    log = source_at(broker.bootstrap).open("limited", json_options(id="int64"))
    planned = plan_union(lake.config, log, is_looked_at_again=True)
    scan = pickle.loads(pickle.dumps(planned.for_tasks()))  # noqa: S301 - as Spark does
    asked: list[str | None] = []
    topic = Cluster.topic

    def counted(cluster: Cluster, name: str, *, had_id: bool = False) -> Topic:
        asked.append(None)
        return topic(cluster, name, had_id=had_id)

    def identify() -> str | None:
        (broker.elect_controller if asked else broker.lose_controller)()
        asked.append(None)
        return cast("str | None", scan.log.identify())

    scan.look_again(identify, or_not_at_all=True)
    assert len(asked) == 2
    monkeypatch.setattr(Cluster, "topic", counted)
    assert [row for rows in scan.read_in_task(planned.splits) for row in rows["id"].to_pylist()] == [0, 1, 2]
    assert len(asked) == 3, "a task of one batch looks once"
    broker.delete_topic("limited")
    broker.create_topic("limited", 1)
    produce(broker.bootstrap, "limited", map(value, range(3)))
    with pytest.raises(TableChanged, match="while it was read"):
        next(scan.read_in_task(planned.splits))


def test_the_stamps_of_many_partitions_are_short(broker: KafkaBroker) -> None:
    broker.create_topic("wide", 70)
    for partition in range(70):
        produce(broker.bootstrap, "wide", map(value, range(2)), partition)
    log = source_at(broker.bootstrap).open("wide", json_options(id="int64"))
    ends = {str(partition): 1 for partition in range(70)}
    stamp = log.stamp(LogOffsets(ends))
    assert stamp is not None
    assert len(stamp) < 1000
    others = {log.stamp(LogOffsets({**ends, bucket: 2})) for bucket in ("0", "31", "32", "69")}
    assert len(others - {stamp, None}) == 4


def test_a_stamp_is_of_the_last_record_of_each_partition(broker: KafkaBroker, topic: str) -> None:
    for partition in range(2):
        produce(broker.bootstrap, topic, [{"value": value(number), "key": b"k"} for number in range(4)], partition)

    def stamp(**offsets: int) -> str | None:
        log = source_at(broker.bootstrap).open(topic, json_options(id="int64"))
        return log.stamp(LogOffsets({name.removeprefix("p"): offset for name, offset in offsets.items()}))

    assert stamp(p0=0, p1=0) is None, "nothing was read"
    found = [stamp(p0=first, p1=second) for first in range(5) for second in range(5)][1:]
    assert None not in found
    assert len(set(found)) == len(found)
    produce(broker.bootstrap, topic, [value(9)])
    assert stamp(p0=4, p1=4) == found[-1], "it stays as the log grows"
    second = stamp(p1=4)
    assert stamp(p0=9, p1=4) == second, "the log ends before"
    broker.delete_records(topic, 0, 3)
    assert stamp(p0=4, p1=4) == found[-1]
    assert stamp(p0=3, p1=4) == second, "that part has expired"
    assert stamp(p0=3) is None


@pytest.mark.parametrize("markers", [1, 70])
def test_markers_of_transactions_after_the_last_record_hide_it_from_no_stamp(
    broker: KafkaBroker, topic: str, markers: int
) -> None:
    """All that comes last in a topic of transactions is a marker, so no rewrite of such a topic was noticed."""
    connection = Connection.of(KafkaOptions(bootstrap_servers=broker.bootstrap, timeout_seconds=20), "events")
    cluster = Cluster(connection)

    def extents(partitions: Collection[int]) -> Mapping[int, tuple[int, int]]:
        """As the cluster tells it of a topic that is not compacted; the mock broker tells no settings of topics."""
        first, last = (
            cluster.offsets(topic, partitions, which, IsolationLevel.READ_UNCOMMITTED)
            for which in (Asked.EARLIEST, Asked.LATEST)
        )
        return {partition: (first[partition].offset, last[partition].offset) for partition in partitions}

    def stamp(first: int, second: int, extents: Extents = extents) -> str | None:
        ends = {partition: end for partition, end in enumerate((first, second)) if end}
        return stamp_of(connection, topic, ends, extents)

    for partition in range(2):
        produce(broker.bootstrap, topic, [value(number) for number in range(3)], partition)
    plain, others = stamp(3, 3), stamp(0, 3)
    assert None not in (plain, others)
    for _ in range(markers):
        mark(broker.bootstrap, topic)
    log = source_at(broker.bootstrap).open(topic, json_options(id="int64"))
    assert log.bounds()["0"].latest == 3 + markers
    assert read(log).num_rows == 6
    assert stamp(3 + markers, 3) == plain, "the last record is the same one"
    assert stamp(3 + markers, 2) not in (plain, None)
    assert stamp(4 + markers, 3) == others, "the log ends before"
    assert stamp(3 + markers, 3, lambda _: None) == others, "compaction may have taken it away"
    produce(broker.bootstrap, topic, [value(9)])
    mark(broker.bootstrap, topic)
    assert stamp(3 + markers, 3) == plain, "it stays as the log grows"
    assert stamp(5 + markers, 3) not in (plain, others, None)
    broker.delete_records(topic, 0, 2)
    assert stamp(3 + markers, 3) == plain
    broker.delete_records(topic, 0, 3)
    assert stamp(3 + markers, 3) == others, "the record has expired, and its marker has not"


def test_a_topic_that_is_compacted_no_more_goes_on_once_it_was_compacted_again(
    nameless: KafkaBroker, tmp_path: Path, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gap that compaction left looks like the marker of a transaction. The mock broker tells no settings of topics
    and compacts nothing: a topic with a marker there instead looks the same."""
    lake = lake_at(tmp_path, "localfile", "db.t", lake__pipeline="tests.events.t")
    is_compacted = [False]
    monkeypatch.setattr(Cluster, "_may_be_compacted", lambda *_: is_compacted[0])
    nameless.create_topic("t", 1)
    produce(nameless.bootstrap, "t", map(value, range(3)))
    round_of(nameless, lake.config, engine)
    nameless.delete_topic("t")
    nameless.create_topic("t", 1)
    produce(nameless.bootstrap, "t", map(value, range(2)))
    mark(nameless.bootstrap, "t")
    produce(nameless.bootstrap, "t", [value(3)])
    with pytest.raises(
        OffsetsRewritten, match=r"If it was compacted until lately.* `laketier service retier`, and take"
    ):
        round_of(nameless, lake.config, engine)
    is_compacted[0] = True
    assert round_of(nameless, lake.config, engine).rows == 1
    is_compacted[0] = False
    produce(nameless.bootstrap, "t", [value(4)])
    round_of(nameless, lake.config, engine)
    assert ids(lake) == list(range(5))


def test_a_broker_that_is_away_is_told_when_a_stamp_is_wanted() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("t", 1)
        produce(broker.bootstrap, "t", [value(1)])
        log = source_at(broker.bootstrap, **{"timeout-seconds": 1}).open("t", json_options(id="int64"))
        broker.down()
        with pytest.raises(StorageError, match="the records before a position were looked up"):
            log.stamp(LogOffsets({"0": 1}))
