"""Lake and log as one in Spark, and rounds from a log as a Spark job."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_logs import produce
from laketier.rounds import LogRound, LogTask, run_log_task
from laketier.rounds.configured_logs import open_configured_table
from laketier.rounds.log_engine import TaskDied
from laketier.spark import read_union
from laketier.spark.log_engine import SparkLogEngine
from laketier.spark.union_read import UnionOptions, UnionReader
from laketier.spi import LaketierError, Leaf, Op, TableLog
from laketier_kafka.mock_broker import KafkaBroker
from laketier_verification.lines import LinesTable

pytestmark = pytest.mark.spark


@pytest.fixture
def service(tmp_path: Path) -> str:
    for name in ("a", "b"):
        LinesTable(tmp_path / "logs", name).create(buckets=2).append(1, 2, 3)
    (tmp_path / "lake").mkdir()
    document: dict[str, Any] = {
        "state": f"sqlite:///{tmp_path}/state.db",
        "sources": {"lines": {"type": "lines", "options": {"path": str(tmp_path / "logs")}}},
        "defaults": {"sink": {"lake.format": "localfile", "lake.warehouse": str(tmp_path / "lake")}},
        "tables": [{"source": "lines", "include": ["b"], "sink": {"lake.format": "delta"}}, {"source": "lines"}],
    }
    path = tmp_path / "service.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def _rounds(service: str, *names: str) -> list[LogRound]:
    made = []
    for name in names:
        table, log = open_configured_table(service, name)
        made.append(LogRound(log, table.config, table.round_settings()))
    return made


def test_one_job_tiers_several_tables_and_one_failure_stays_alone(
    spark: SparkSession, service: str, tmp_path: Path
) -> None:
    LinesTable(tmp_path / "logs", "bad").create().append_raw("poison")
    rounds = _rounds(service, "lines.a", "lines.b", "lines.bad")
    tasks: list[LogTask] = [task for each in rounds for task in each.plan()]
    before = spark.sparkContext.statusTracker().getJobIdsForGroup()
    answers = list(SparkLogEngine(spark).run(tasks))
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup()) - len(before) == 1
    errors = [answer.table for answer in answers if answer.error is not None]
    assert errors == ["laketier.lines.bad"]
    for each in rounds[:2]:
        mine = [answer for answer in answers if answer.table == each.config.pipeline]
        assert each.finish(mine).rows == 3


class _Deadly:
    """Ends the process that reads it: as a native library does that crashes, or the kernel where memory ends."""

    def __init__(self, log: TableLog) -> None:
        self.table = log.table

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (9,)


def test_a_table_that_kills_its_process_fails_alone(spark: SparkSession, service: str, tmp_path: Path) -> None:
    LinesTable(tmp_path / "logs", "bad").create().append(1)
    rounds = _rounds(service, "lines.a", "lines.bad", "lines.b")
    tasks: list[LogTask] = [task for each in rounds for task in each.plan()]
    deadly = [replace(task, log=cast("Any", _Deadly(task.log))) if "bad" in task.table else task for task in tasks]
    answers = list(SparkLogEngine(spark).run(deadly))
    assert sorted(answer.table for answer in answers) == sorted(task.table for task in tasks)
    (failed,) = [answer for answer in answers if answer.error is not None]
    assert failed.table == "laketier.lines.bad"
    assert "worker exited unexpectedly" in str(failed.error)
    assert isinstance(failed.error, TaskDied), "it may be charged to the table"
    for each in (rounds[0], rounds[2]):
        mine = [answer for answer in answers if answer.table == each.config.pipeline]
        assert each.finish(mine).rows == 3


def test_union_in_spark(spark: SparkSession, service: str, tmp_path: Path) -> None:
    (first,) = _rounds(service, "lines.b")
    first.finish([run_log_task(task) for task in first.plan()])
    LinesTable(tmp_path / "logs", "b").append(4, 5, bucket=1)
    reader = spark.read.format("laketier").option("union", "true").option("lake.service", service)
    assert sorted(row.id for row in reader.load("lines.b").collect()) == [1, 2, 3, 4, 5]
    above = read_union(spark, "lines.b", service=service, columns=["id"], filters=[Leaf("id", Op.GE, 3)])
    assert above.columns == ["id"]
    assert sorted(row.id for row in above.collect()) == [3, 4, 5]


def test_union_by_key_in_spark(spark: SparkSession, service: str, tmp_path: Path) -> None:
    log = LinesTable(tmp_path / "logs", "keyed").create(columns={"op": "string", "id": "int64", "text": "string"})
    log.describe(primary_key=["id"], change_column="op")
    log.append_raw(*(f'{{"op": "+I", "id": {i}, "text": "old"}}' for i in range(4)))
    (first,) = _rounds(service, "lines.keyed")
    first.finish([run_log_task(task) for task in first.plan()])
    log.append_raw(
        '{"op": "+U", "id": 1, "text": "new"}', '{"op": "-D", "id": 2}', '{"op": "+I", "id": 9, "text": "new"}'
    )
    reader = spark.read.format("laketier").option("union", "true").option("lake.service", service)
    loaded = reader.load("lines.keyed")
    assert loaded.columns == ["id", "text"]
    assert sorted(map(tuple, loaded.collect())) == [(0, "old"), (1, "new"), (3, "old"), (9, "new")]
    old = read_union(spark, "lines.keyed", service=service, columns=["id"], filters=[Leaf("text", Op.EQ, "old")])
    assert sorted(row.id for row in old.collect()) == [0, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"union": "perhaps"}, "union = 'perhaps' is not true or false"),
        ({"union": "true"}, "a union read needs lake.service"),
        ({"union": "true", "lake.servce": "x"}, "Did you mean 'lake.service'?"),
    ],
)
def test_what_is_wrong_with_a_union_is_said(spark: SparkSession, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=r"laketier\.spi\.errors\.ConfigError") as caught:
        spark.read.format("laketier").options(**options).load("lines.b")
    assert message in str(caught.value)


def test_a_union_read_on_spark_tells_a_topic_that_was_made_again_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing runs on the driver after the last task: it gave the rows of the new topic as those of the old one."""
    for ids, kind in ((True, "TableChanged"), (False, "OffsetsRewritten")):
        with KafkaBroker(topic_ids=ids) as broker:
            file = tmp_path / f"{kind}.yaml"
            sink = {"lake.format": "localfile", "lake.warehouse": str(tmp_path / kind)}
            connect = {"bootstrap-servers": broker.bootstrap, "timeout-seconds": 20}
            read_as = {"value-format": "json", "columns": {"id": "int64"}}
            document = {
                "state": f"sqlite:///{tmp_path}/state.db",
                "sources": {"events": {"type": "kafka", "options": connect}},
                "tables": [{"source": "events", "target": "db.t", "sink": sink, "read": read_as}],
            }
            file.write_text(yaml.safe_dump(document))

            def made(first: int, broker: KafkaBroker = broker) -> None:
                broker.create_topic("again", 1)
                produce(broker.bootstrap, "again", [b'{"id":%d}' % number for number in range(first, first + 3)])

            made(0)
            planned = read_union(spark, "events.again", service=str(file))
            assert sorted(row.id for row in planned.collect()) == [0, 1, 2], "each action looks, and nothing changed"
            options = UnionOptions.of({"union": "true", "lake.service": str(file), "path": "events.again"})
            assert options is not None
            reader = UnionReader(options, planned.schema)
            (partition,) = pickle.loads(pickle.dumps(reader.partitions()))  # noqa: S301 - our own
            broker.delete_topic("again")
            made(10)
            with pytest.raises(PySparkException, match=rf"{kind}: .* while it was read.* Throw away what was read"):
                planned.collect()
            seen: list[int] = []
            with pytest.raises(LaketierError, match="while it was read") as caught:  # the data source's way
                seen.extend(number for rows in reader.read(partition) for number in rows["id"].to_pylist())
            assert type(caught.value).__name__ == kind
            assert seen == [], "it looks before it hands over rows, too"
