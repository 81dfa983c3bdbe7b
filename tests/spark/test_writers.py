"""What becomes of staged files when Spark gives a write up. The writers are driven by hand, as only then is it known
which tasks have answered. In Delta a staged file has its final name at once, so a wrong deletion shows."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from laketier.kit import FailpointError
from laketier.kit.failpoints import VARIABLE
from laketier.registry import configure
from laketier.spark.batch_writer import LakeBatchWriter
from laketier.spark.lanes import drive
from laketier.spark.messages import LakeCommitMessage, stage
from laketier.spark.stream_writer import LakeStreamWriter
from laketier.spark.target import load
from laketier.spi import CommitError, ConfigError, ScanRequest, TokenMismatch, WriteMode
from laketier.tables import open_source
from laketier.tables.scan import scan
from laketier.tiering import TieringRound
from spark_lake import Target

SCHEMA = StructType([StructField("id", LongType())])


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(tmp_path, "delta")


def rows(target: Target) -> list[int]:
    _, batches = scan(open_source(configure(target.options())), ScanRequest())
    return sorted(value for batch in batches for value in batch.column("id").to_pylist())


def ids(*values: int) -> list[pa.RecordBatch]:
    return [pa.record_batch([pa.array(values, pa.int64())], names=["id"])]


def stream_writer(target: Target) -> LakeStreamWriter:
    (target.checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (target.checkpoint / "metadata").write_text('{"id":"run-1"}')
    (target.checkpoint / "offsets/0").write_text('v1\n{}\n{"position":1}')
    config = configure(target.options(pipeline="events-v1"))
    return LakeStreamWriter(config, SCHEMA, overwrite=False, checkpoint=str(target.checkpoint))


def planned(writer: LakeStreamWriter) -> LakeStreamWriter:
    copy: LakeStreamWriter = pickle.loads(pickle.dumps(writer))  # noqa: S301 - as Spark does
    return copy


class TestBatch:
    def test_a_task_that_never_answered_means_that_no_commit_was_tried(self, target: Target) -> None:
        writer = LakeBatchWriter(configure(target.options()), SCHEMA, overwrite=False)
        answer = writer.write(iter(ids(1)))
        assert len(target.data_files()) == 1
        writer.abort([answer, None])
        assert target.data_files() == []

    def test_all_answers_leave_open_whether_the_commit_landed(self, target: Target) -> None:
        writer = LakeBatchWriter(configure(target.options()), SCHEMA, overwrite=False)
        answer = writer.write(iter(ids(1)))
        writer.commit([answer])
        writer.abort([answer])
        assert rows(target) == [1]

    def test_a_commit_whose_answer_was_lost(self, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
        writer = LakeBatchWriter(configure(target.options()), SCHEMA, overwrite=False)
        answer = writer.write(iter(ids(1)))
        monkeypatch.setenv(VARIABLE, "ack.before=error")
        with pytest.raises(FailpointError):
            writer.commit([answer])
        monkeypatch.delenv(VARIABLE)
        writer.abort([answer])
        assert rows(target) == [1]

    def test_a_commit_without_a_tasks_answer_is_refused(self, target: Target) -> None:
        writer = LakeBatchWriter(configure(target.options()), SCHEMA, overwrite=False)
        answer = writer.write(iter(ids(1)))
        with pytest.raises(CommitError, match="1 of 2 tasks gave no answer"):
            writer.commit([answer, None])
        assert rows(target) == []


class TestStream:
    def test_a_commit_without_a_tasks_answer_is_refused(self, target: Target) -> None:
        answer = planned(stream_writer(target)).write(iter(ids(1)))
        with pytest.raises(CommitError, match=r"1 of 2 tasks gave no answer.* Use \.trigger"):
            stream_writer(target).commit([answer, None], 0)
        assert rows(target) == []

    @pytest.mark.parametrize("offsets", [None, 'v1\n\n{"0":{"value":-2}}'])
    def test_an_epoch_that_the_checkpoint_does_not_begin_as_a_micro_batch_is_refused(
        self, target: Target, offsets: str | None
    ) -> None:
        """Of a continuous trigger's epochs Spark writes the offsets after the tasks began, and without settings."""
        writer, newest = stream_writer(target), target.checkpoint / "offsets/0"
        newest.unlink() if offsets is None else newest.write_text(offsets)
        with pytest.raises(ConfigError, match=r"a continuous trigger is not supported.* Use \.trigger"):
            planned(writer)

    def test_a_checkpoint_from_elsewhere_is_refused_also_where_epochs_were_planned_before(self, target: Target) -> None:
        """Of a query that is started again at once, Spark plans in a process that keeps what it knew of the last epoch.
        The same offsets may stand for other rows, so the log of a file source counts, too."""
        log, offsets = target.checkpoint / "sources/0", target.checkpoint / "offsets"
        log.mkdir(parents=True)

        def run(epoch: int) -> None:
            writer = stream_writer(target)
            (log / str(epoch)).write_text(f'v1\n{{"path":"f{epoch}","batchId":{epoch}}}')
            for each in range(epoch + 1):
                (offsets / str(each)).write_text(f'v1\n{{}}\n{{"logOffset":{each}}}')
            writer.commit([planned(writer).write(iter(ids(epoch)))], epoch)

        run(0)
        run(1)
        (log / "1").write_text('v1\n{"path":"another","batchId":1}')
        with pytest.raises(TokenMismatch, match="than this run read as epoch 1"):
            run(2)
        assert rows(target) == [0, 1]

    def test_a_task_that_never_answered_means_that_no_commit_was_tried(self, target: Target) -> None:
        answer = planned(stream_writer(target)).write(iter(ids(1)))
        assert len(target.data_files()) == 1
        stream_writer(target).abort([answer, None], 0)
        assert target.data_files() == []

    def test_without_the_factory_of_partition_0_too(self, target: Target) -> None:
        answer = planned(stream_writer(target)).write(iter(ids(1)))
        assert isinstance(answer, LakeCommitMessage)
        stream_writer(target).abort([None, LakeCommitMessage(answer.result)], 0)
        assert target.data_files() == []

    def test_a_commit_whose_answer_was_lost(self, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
        answer = planned(stream_writer(target)).write(iter(ids(1)))
        monkeypatch.setenv(VARIABLE, "ack.before=error")
        with pytest.raises(FailpointError):
            stream_writer(target).commit([answer], 0)
        monkeypatch.delenv(VARIABLE)
        stream_writer(target).abort([answer], 0)
        assert rows(target) == [1]
        again = planned(stream_writer(target))
        assert again._done_epoch == 0
        stream_writer(target).commit([LakeCommitMessage(None, query_id="run-1")], 0)
        assert rows(target) == [1]


def test_our_lanes_delete_what_finished_tasks_of_a_failed_job_staged(spark: SparkSession, target: Target) -> None:
    LakeBatchWriter(configure(target.options()), SCHEMA, overwrite=False)
    config = configure(target.options())
    factory = load(config).factory

    def run(staged):  # type: ignore[no-untyped-def]
        staged.add([stage(factory, ids(1), mode=WriteMode.APPEND)])
        assert len(target.data_files()) == 1
        raise RuntimeError("the other task failed")

    tiering = TieringRound(factory)
    with pytest.raises(RuntimeError, match="the other task"):
        drive(spark, tiering, run, config, None, tiering.begin)
    assert target.data_files() == []


def test_a_continuous_trigger_is_refused_before_a_row_is_taken(spark: SparkSession, target: Target) -> None:
    query = (
        spark.readStream.format("rate")
        .load()
        .selectExpr("value AS id")
        .writeStream.format("laketier")
        .options(**target.options(pipeline="events-v1"))
        .option("checkpointLocation", str(target.checkpoint))
        .trigger(continuous="1 second")
        .start()
    )
    try:
        with pytest.raises(StreamingQueryException, match="a continuous trigger is not supported"):
            query.awaitTermination()
    finally:
        query.stop()
    assert not list((target.checkpoint / "commits").glob("[0-9]*")), "Spark must not take the rows for written"
