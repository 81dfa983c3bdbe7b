"""`laketier.spark.write_batch` in a foreachBatch: every row once, whatever becomes of the checkpoint."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession, functions

import laketier.spark
from laketier.registry import configure, open_lake
from laketier.spark.checkpoint import Checkpoint
from laketier.spark.failures import cause_of
from laketier.spark.running_query import files_hash
from laketier.spi import ConfigError, Gap, LaketierError, LakeTieringFactory, TokenMismatch, WatermarkLost
from laketier.tiering import RoundResult, pipelines
from laketier.tiering.publish import RoundOutcome
from spark_lake import COLUMNS, Landing, Target

Body = Callable[[DataFrame, int], object]
Run = Callable[..., None]


@pytest.fixture
def run_batches(spark: SparkSession) -> Iterator[Run]:
    """Stream a landing zone through a function, one file per batch, until all is taken. Raises what it raised."""

    def run(landing: Landing, checkpoint: Path, body: Body) -> None:
        reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
        raised: list[Exception] = []

        def each(df: DataFrame, batch_id: int) -> None:
            try:
                body(df, batch_id)
            except Exception as error:
                raised.append(error)
                raise

        writer = reader.parquet(str(landing.folder)).writeStream.foreachBatch(each)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except StreamingQueryException:
            if raised:
                raise raised[0] from None
            raise

    yield run
    for query in spark.streams.active:
        query.stop()


def drop_commit(checkpoint: Path, epoch: int) -> None:
    """As if the driver had died after the function and before Spark's own commit."""
    (checkpoint / "commits" / f".{epoch}.crc").unlink()
    (checkpoint / "commits" / str(epoch)).unlink()


def test_a_batch_that_overwrites(run_batches: Run, spark: SparkSession, landing: Landing, tmp_path: Path) -> None:
    """Each takes the place of all rows, and a replay of none."""
    target = Target(tmp_path, "localfile")
    outcomes: list[RoundOutcome] = []

    def body(df: DataFrame, batch_id: int) -> None:
        options = target.options(pipeline="events-v1")
        outcomes.append(laketier.spark.write_batch(df, batch_id, options, mode="overwrite").outcome)

    landing.land(1)
    run_batches(landing, target.checkpoint, body)
    first = landing.ids
    landing.land(1)
    run_batches(landing, target.checkpoint, body)
    last = sorted({*landing.ids} - {*first})
    assert target.ids(spark) == last
    drop_commit(target.checkpoint, 1)
    run_batches(landing, target.checkpoint, body)
    assert outcomes == [RoundOutcome.PUBLISHED, RoundOutcome.PUBLISHED, RoundOutcome.ALREADY_THERE]
    assert target.ids(spark) == last
    rows = spark.createDataFrame([], COLUMNS)
    with pytest.raises(ConfigError, match="mode"):
        laketier.spark.write_batch(rows, 0, target.options(pipeline="events-v1"), mode="replace")


def test_a_session_that_overwrites_partitions_one_by_one(
    run_batches: Run, spark: SparkSession, landing: Landing, tmp_path: Path
) -> None:
    """Of Delta and Iceberg a batch would keep the partitions without new rows then. The second batch uses the table as
    the first one loaded it."""
    target = Target(tmp_path, "localfile")
    mode = "spark.sql.sources.partitionOverwriteMode"

    def body(df: DataFrame, batch_id: int) -> None:
        df.sparkSession.conf.set(mode, "dynamic" if batch_id else "static")
        options = target.options(pipeline="events-v1", partition_by="name")
        laketier.spark.write_batch(df, batch_id, options, mode="overwrite")

    landing.land(2)
    with pytest.raises(ConfigError, match=f"{mode} is dynamic"):
        run_batches(landing, target.checkpoint, body)
    assert target.ids(spark) == landing.ids[: landing.rows]


@pytest.mark.quick_on("iceberg")
def test_rows_arrive_once_whatever_becomes_of_the_checkpoint(
    run_batches: Run, spark: SparkSession, landing: Landing, each_target: Target
) -> None:
    target = each_target
    outcomes: list[tuple[int, RoundOutcome]] = []

    def body(df: DataFrame, batch_id: int) -> None:
        done = laketier.spark.write_batch(df, batch_id, target.options(pipeline="events-v1"))
        outcomes.append((batch_id, done.outcome))

    landing.land(2)
    run_batches(landing, target.checkpoint, body)
    assert outcomes == [(0, RoundOutcome.PUBLISHED), (1, RoundOutcome.PUBLISHED)]
    files = target.data_files()

    drop_commit(target.checkpoint, 1)
    run_batches(landing, target.checkpoint, body)
    assert outcomes[2:] == [(1, RoundOutcome.ALREADY_THERE)]
    assert target.data_files() == files, "a replayed batch must write nothing"
    assert target.ids(spark) == landing.ids

    older = target.folder / "older"
    shutil.copytree(target.checkpoint, older)
    landing.land(1)
    run_batches(landing, target.checkpoint, body)
    assert target.ids(spark) == landing.ids
    before = landing.ids

    shutil.rmtree(target.checkpoint)
    with pytest.raises(TokenMismatch, match="belongs to run"):
        run_batches(landing, target.checkpoint, body)

    shutil.rmtree(target.checkpoint)
    shutil.copytree(older, target.checkpoint)
    for path in landing.folder.glob("f0002*"):
        path.unlink()
    landing.landed = 2
    landing.land(1, name="other")
    with pytest.raises(TokenMismatch, match="other input"):
        run_batches(landing, target.checkpoint, body)
    assert target.ids(spark) == before

    # The copy went on elsewhere, so its next epoch follows that of the table by its number alone.
    run_batches(landing, target.checkpoint, lambda df, batch_id: None)
    landing.land(1)
    with pytest.raises(TokenMismatch, match="than this run read as epoch 2"):
        run_batches(landing, target.checkpoint, body)
    assert target.ids(spark) == before


def test_two_sinks_in_threads_and_a_retry_of_the_function(
    run_batches: Run, spark: SparkSession, landing: Landing, target: Target
) -> None:
    """Each table has its own watermark, so one pipeline id may serve both; the second call is the same write again."""
    odd = Target(target.folder, "localfile", "db.odd")
    results: list[RoundResult] = []

    def body(df: DataFrame, batch_id: int) -> None:
        parts = [(df.where("id % 2 = 0"), target), (df.where("id % 2 = 1"), odd)] * 2
        for pair in (parts[:2], parts[2:]):
            calls = [
                threading.Thread(
                    target=lambda part=part, to=to: results.append(
                        laketier.spark.write_batch(part, batch_id, to.options(pipeline="events-v1"))
                    )
                )
                for part, to in pair
            ]
            for call in calls:
                call.start()
            for call in calls:
                call.join()

    landing.land(1)
    run_batches(landing, target.checkpoint, body)
    assert [result.outcome for result in results] == [RoundOutcome.PUBLISHED] * 2 + [RoundOutcome.ALREADY_THERE] * 2
    assert sorted(target.ids(spark) + odd.ids(spark)) == landing.ids


def test_other_rows_under_one_name_in_one_batch_are_refused(
    run_batches: Run, spark: SparkSession, landing: Landing, target: Target
) -> None:
    """However the way to the table is spelled."""
    (target.folder / "elsewhere").symlink_to(target.folder)

    def body(df: DataFrame, batch_id: int) -> None:
        for part, folder in (("id % 2 = 0", target.folder), ("id % 2 = 1", target.folder / "elsewhere")):
            options = replace(target, folder=folder).options(pipeline="events-v1")
            laketier.spark.write_batch(df.where(part), batch_id, options)

    landing.land(1)
    with pytest.raises(ConfigError, match="a second time, with other rows"):
        run_batches(landing, target.checkpoint, body)
    assert target.ids(spark) == [0, 2, 4, 6, 8]


def test_other_files_of_one_folder_in_one_batch_are_other_rows(
    run_batches: Run, spark: SparkSession, landing: Landing, target: Target
) -> None:
    """Spark's hash of a plan tells the folder that it reads, and not which files are there by now."""
    steps = target.folder / "steps"

    def body(df: DataFrame, batch_id: int) -> None:
        for part in ("id % 2 = 0", "id % 2 = 1"):
            df.where(part).write.mode("overwrite").parquet(str(steps))
            again = df.sparkSession.read.schema(COLUMNS).parquet(str(steps))
            for _ in range(2):
                laketier.spark.write_batch(again, batch_id, target.options(pipeline="events-v1"))

    landing.land(1)
    with pytest.raises(ConfigError, match="a second time, with other rows"):
        run_batches(landing, target.checkpoint, body)
    assert target.ids(spark) == [0, 2, 4, 6, 8]


def test_the_files_that_a_batch_reads_are_not_fetched_name_by_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20,000 files that took 2 s for each call."""
    for name in "abc":
        (tmp_path / name).write_text(name)
    monkeypatch.delattr(DataFrame, "inputFiles")
    monkeypatch.delattr(type(spark.range(1)), "inputFiles", raising=False)

    def told(*names: str) -> int:
        return files_hash(spark.read.text([str(tmp_path / name) for name in names]))

    assert told("a", "b") == told("b", "a")
    assert len({told("a"), told("a", "b"), told("a", "b", "c"), files_hash(spark.range(1))}) == 4


def test_a_table_gets_each_batch_also_without_rows(
    run_batches: Run, spark: SparkSession, landing: Landing, tmp_path: Path
) -> None:
    """One that misses some refuses the next, and says what to do; one that joins later is made first, and adopted."""
    even, late = Target(tmp_path, "localfile", "db.even"), Target(tmp_path, "localfile", "db.late")
    checkpoint, skips = tmp_path / "checkpoint", [True]

    def body(df: DataFrame, batch_id: int) -> None:
        if batch_id % 2 == 0 or not skips:
            rows = df if batch_id % 2 == 0 else df.limit(0)
            laketier.spark.write_batch(rows, batch_id, even.options(pipeline="p"))
        if batch_id >= 3:
            laketier.spark.write_batch(df, batch_id, late.options(pipeline="p"))

    landing.land(5)
    with pytest.raises(Gap, match=r"epoch 2 does not follow epoch 0.*write_batch with df\.limit\(0\)"):
        run_batches(landing, checkpoint, body)
    skips.clear()
    pipelines.adopt(factory_of(even), "p", run=run_of(checkpoint), epoch=1)
    with pytest.raises(WatermarkLost, match=r"there is no table, but this is epoch 3 .*make it first.*pipeline adopt"):
        run_batches(landing, checkpoint, body)
    laketier.spark.write(spark.createDataFrame([], COLUMNS), late.options())
    with pytest.raises(WatermarkLost, match=r"does not know the pipeline.*--epoch 2"):
        run_batches(landing, checkpoint, body)
    pipelines.adopt(factory_of(late), "p", run=run_of(checkpoint), epoch=2)
    run_batches(landing, checkpoint, body)
    assert even.ids(spark) == [*range(10), *range(20, 30), *range(40, 50)]
    assert late.ids(spark) == list(range(30, 50))


def factory_of(target: Target) -> LakeTieringFactory[Any]:
    lake = open_lake(configure(target.options()))
    return lake.tiering_factory(lake.load_table())


def run_of(checkpoint: Path) -> str:
    found = Checkpoint.open(str(checkpoint))
    assert isinstance(found, Checkpoint)
    return found.run


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_results_in_full_that_are_appended_are_warned_of(
    spark: SparkSession, landing: Landing, target: Target, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    def body(df: DataFrame, batch_id: int) -> None:
        laketier.spark.write_batch(df, batch_id, target.options(pipeline="p"), mode=mode)

    landing.land(2)
    source = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(landing.folder))
    counted = source.groupBy().agg(functions.count("*").alias("id")).writeStream.outputMode("complete")
    with caplog.at_level(logging.WARNING):
        started = counted.foreachBatch(body).option("checkpointLocation", str(target.checkpoint))
        started.trigger(availableNow=True).start().awaitTermination()
    assert target.ids(spark) == ([10, 20] if mode == "append" else [20])
    assert ("holds its whole result" in caplog.text) is (mode == "append")


def test_a_batch_that_is_none_of_a_running_query_is_refused(
    run_batches: Run, spark: SparkSession, landing: Landing, target: Target
) -> None:
    named = target.options(pipeline="events-v1")
    rows = spark.range(3)
    with pytest.raises(ConfigError, match="the query of this batch is unknown"):
        laketier.spark.write_batch(rows, 0, named)
    landing.land(2)
    run_batches(landing, target.checkpoint, lambda df, batch_id: None)
    with pytest.raises(ConfigError, match="batch 0 is not the one that runs"):
        laketier.spark.write_batch(rows, 0, named, checkpoint=str(target.checkpoint))
    other = target.folder / "other"
    wrong: dict[str, Body] = {
        "batch 7 is not the one": lambda df, batch_id: laketier.spark.write_batch(df, 7, named),
        "another query's": lambda df, batch_id: laketier.spark.write_batch(
            df, batch_id, named, checkpoint=str(target.checkpoint)
        ),
        "a stream needs lake.pipeline": lambda df, batch_id: laketier.spark.write_batch(df, batch_id, target.options()),
    }
    for message, body in wrong.items():
        with pytest.raises(ConfigError, match=message):
            run_batches(landing, other, body)
    assert not target.warehouse.exists()


def test_the_plain_way_says_what_it_cannot_know(
    run_batches: Run, spark: SparkSession, landing: Landing, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    def body(df: DataFrame, batch_id: int) -> None:
        laketier.spark.write(df, target.options(pipeline="events-v1", epoch=batch_id))

    landing.land(2)
    with caplog.at_level(logging.WARNING, logger="laketier"):
        run_batches(landing, target.checkpoint, body)
        laketier.spark.write(spark.range(1), Target(target.folder, "localfile", "db.b").options(pipeline="p", epoch=0))
    said = [record.message for record in caplog.records if "laketier.spark.write_batch" in record.message]
    assert len(said) == 1, "once, and not outside of a foreachBatch"


def test_a_failing_task_is_one_sentence_and_leaves_nothing(
    run_batches: Run, spark: SparkSession, landing: Landing, target: Target
) -> None:
    def body(df: DataFrame, batch_id: int) -> None:
        laketier.spark.write_batch(
            df.selectExpr("id", "CAST(raise_error('no') AS string) AS name"),
            batch_id,
            target.options(pipeline="events-v1"),
        )

    landing.land(1)
    with pytest.raises(PySparkException):
        run_batches(landing, target.checkpoint, body)
    assert target.data_files() == []


def test_a_refusal_names_the_whole_command(run_batches: Run, landing: Landing, target: Target) -> None:
    odd = Target(target.folder / "a b", "localfile")

    def body(df: DataFrame, batch_id: int) -> None:
        laketier.spark.write_batch(df, batch_id, odd.options(pipeline="events-v1"))

    landing.land(1)
    run_batches(landing, target.checkpoint, body)
    shutil.rmtree(target.checkpoint)
    with pytest.raises(LaketierError) as refusal:
        run_batches(landing, target.checkpoint, body)
    assert isinstance(cause_of(refusal.value), TokenMismatch)
    where = f"db.events -f localfile -w '{odd.warehouse}' -p events-v1"
    assert f"`laketier pipeline adopt {where} --run " in str(refusal.value)
    assert f"`laketier pipeline forget {where}`" in str(refusal.value)
