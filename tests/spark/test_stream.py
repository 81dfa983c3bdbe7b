"""Streams through ``df.writeStream.format("laketier")``: every row once, whatever becomes of the checkpoint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import laketier.spark
from laketier.registry import configure
from laketier.spark.arrow_batches import MAX_BYTES, UNBOUNDED
from laketier.spark.failures import cause_of
from laketier.spark.target import load
from laketier.spi import CommitterInitContext, ConfigError, IncompatibleTable, TokenMismatch, Watermark
from spark_lake import COLUMNS, Landing, Target, setting_seen_by_tasks

Run = Callable[..., list[dict[str, Any]]]
Settings = Callable[[dict[str, str]], None]


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[Settings]:
    """Set keys of the session, for this test."""
    changed: dict[str, str | None] = {}

    def change(values: dict[str, str]) -> None:
        explicit = spark.conf.getAll
        for key, value in values.items():
            changed.setdefault(key, explicit.get(key))
            spark.conf.set(key, value)

    yield change
    for key, value in changed.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def _in_a_thread(work: Callable[[], Any]) -> Any:
    """One of the user's own, where no session is active."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_streams_and_batches_that_threads_begin(spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(1)
    df = spark.readStream.schema(COLUMNS).parquet(str(landing.folder))
    settings, checkpoint = target.options(pipeline="events-v1"), str(target.checkpoint)

    def stream() -> None:
        laketier.spark.stream(df, settings, checkpoint=checkpoint, trigger={"availableNow": True}).awaitTermination()

    def write() -> None:
        rows = laketier.spark.get_or_create().read.schema(COLUMNS).parquet(str(landing.folder))
        rows.write.format("laketier").mode("append").options(**target.options()).save()

    _in_a_thread(stream)
    once = target.ids(spark)
    _in_a_thread(write)
    assert sorted(once * 2) == sorted(target.ids(spark))
    assert once


def watermark(target: Target) -> Watermark:
    committer = load(configure(target.options())).factory.create_committer(CommitterInitContext(commit_id="look"))
    try:
        found = committer.open().watermark("events-v1")
    finally:
        committer.close()
    assert found is not None
    return found


def drop_commit(checkpoint: Path, epoch: int) -> None:
    """As if the driver had died after the sink's commit and before its own."""
    (checkpoint / "commits" / f".{epoch}.crc").unlink()
    (checkpoint / "commits" / str(epoch)).unlink()


@pytest.mark.quick_on("delta")
def test_rows_arrive_once_across_restart_and_replay(
    run_stream: Run, spark: SparkSession, landing: Landing, each_target: Target
) -> None:
    landing.land(2)
    run_stream(landing, each_target)
    assert each_target.ids(spark) == landing.ids
    first = watermark(each_target)
    assert (first.token.epoch, first.token.run) == (1, first.token.run)
    assert first.token.content is not None
    files = each_target.data_files()

    drop_commit(each_target.checkpoint, 1)
    run_stream(landing, each_target)
    assert each_target.ids(spark) == landing.ids
    assert watermark(each_target) == first, "a replayed epoch must change nothing"
    assert each_target.data_files() == files, "a replayed epoch must write nothing"

    landing.land(1)
    run_stream(landing, each_target)
    assert each_target.ids(spark) == landing.ids
    assert watermark(each_target).token.epoch == 2


@pytest.mark.quick_on("lance")
def test_values_survive(run_stream: Run, spark: SparkSession, landing: Landing, each_target: Target) -> None:
    landing.land(1)
    run_stream(landing, each_target)
    expected = spark.read.schema(COLUMNS).parquet(str(landing.folder))
    written = spark.read.format("laketier").options(**each_target.options()).load()
    assert written.schema == expected.schema
    assert sorted(written.collect()) == sorted(expected.collect())


OFFSET_LOGS = {
    "v1": {"spark.sql.streaming.offsetLog.formatVersion": "1"},
    "v2": {"spark.sql.streaming.offsetLog.formatVersion": "2"},
    "named": {"spark.sql.streaming.queryEvolution.enableSourceEvolution": "true"},
}


@pytest.mark.parametrize("layout", OFFSET_LOGS)
def test_restored_checkpoint_with_other_files_is_refused(
    run_stream: Run, spark: SparkSession, landing: Landing, target: Target, layout: str, settings: Settings
) -> None:
    settings(OFFSET_LOGS[layout])  # Spark before 4.3 knows only version 1, and leaves the other settings unread
    reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    if layout == "named":
        if not hasattr(reader, "name"):
            pytest.skip("this Spark has no named sources")
        reader = reader.name("orders")
    landing.land(1)
    df = reader.parquet(str(landing.folder))
    run_stream(landing, target, df=df)
    older = target.folder / "older"
    shutil.copytree(target.checkpoint, older)
    landing.land(1)
    run_stream(landing, target, df=df)
    before = target.ids(spark)
    drop_commit(target.checkpoint, 1)
    run_stream(landing, target, df=df)
    assert target.ids(spark) == before, "a replay of the same files is the same epoch"

    shutil.rmtree(target.checkpoint)
    shutil.copytree(older, target.checkpoint)
    # Epoch 1 is planned anew, with another file: same query id, same offsets line, other rows.
    for path in landing.folder.glob("f0001*"):
        path.unlink()
    landing.landed = 1
    landing.land(1, name="other")
    with pytest.raises(PySparkException) as refusal:
        run_stream(landing, target, df=df)
    assert isinstance(cause_of(refusal.value), TokenMismatch)
    assert target.ids(spark) == before


def test_new_checkpoint_on_old_table_is_refused(
    run_stream: Run, spark: SparkSession, landing: Landing, target: Target
) -> None:
    landing.land(1)
    run_stream(landing, target)
    files = target.data_files()
    shutil.rmtree(target.checkpoint)
    with pytest.raises(PySparkException) as refusal:
        run_stream(landing, target)
    cause = cause_of(refusal.value)
    assert isinstance(cause, TokenMismatch)
    run = json.loads((target.checkpoint / "metadata").read_text())["id"]
    command = f"adopt db.events -f localfile -w {target.warehouse} -p events-v1 --run {run} --epoch 0`"
    assert f"`laketier pipeline {command}" in str(cause)
    said = str(refusal.value)
    assert (said.count("belongs to run"), said.count("PicklingError")) == (1, 0), "the sentence, once"
    query = spark.readStream.schema(COLUMNS).parquet(str(landing.folder)).writeStream.format("laketier")
    query = query.options(**target.options(pipeline="events-v1"), checkpointLocation=str(target.checkpoint))
    with pytest.raises(TokenMismatch) as plain:
        laketier.spark.await_termination(query.trigger(availableNow=True).start())
    assert str(plain.value) == str(cause)
    assert plain.value.__suppress_context__, "no pages of Spark's before it"
    assert target.ids(spark) == landing.ids
    assert target.data_files() == files, "refused before anything was staged"


def test_checkpoint_without_its_id_is_refused(
    run_stream: Run, spark: SparkSession, landing: Landing, target: Target
) -> None:
    landing.land(1)
    run_stream(landing, target)
    (target.checkpoint / "metadata").unlink()
    (target.checkpoint / ".metadata.crc").unlink()
    landing.land(1)
    with pytest.raises(PySparkException) as refusal:
        run_stream(landing, target)
    # Spark 4.3 looks for itself; before that, it makes up a new id, and the table knows the old one.
    by_spark = refusal.value.getCondition() or ""
    assert isinstance(cause_of(refusal.value), TokenMismatch) or "METADATA" in by_spark
    assert len(target.ids(spark)) == landing.rows


def test_checkpoint_as_session_setting_goes_by_run_and_epoch(
    run_stream: Run, spark: SparkSession, landing: Landing, target: Target
) -> None:
    landing.land(2)
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(target.folder / "checkpoints"))
    try:
        run_stream(landing, target, checkpointLocation=None, queryName="named")
        query_folder = target.folder / "checkpoints" / "named"
        found = watermark(target)
        assert (found.token.epoch, found.token.content) == (1, None)
        assert found.token.run in (query_folder / "metadata").read_text()
        drop_commit(query_folder, 1)
        run_stream(landing, target, checkpointLocation=None, queryName="named")
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert target.ids(spark) == landing.ids


def test_two_queries_in_one_table(run_stream: Run, spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(1)
    run_stream(landing, target)
    other = Landing(target.folder / "landing2", rows=5)
    other.land(2)
    run_stream(other, target, **{"checkpointLocation": str(target.folder / "second"), "lake.pipeline": "second"})
    assert target.ids(spark) == sorted(landing.ids + other.ids)
    assert watermark(target).token.epoch == 0


def test_union_of_a_file_source_and_another(
    run_stream: Run, spark: SparkSession, landing: Landing, target: Target
) -> None:
    landing.land(1)
    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
    files = spark.readStream.schema(COLUMNS).parquet(str(landing.folder)).select("id")
    run_stream(landing, target, df=files.union(rates.select(F.col("value").alias("id"))))
    assert target.ids(spark) == sorted([*landing.ids, 0, 1, 2])
    assert watermark(target).token.content is not None


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_complete_mode_replaces_the_rows(spark: SparkSession, landing: Landing, target: Target, mode: str) -> None:
    """Whatever the session asks of an overwrite: the result of the query is the whole table."""
    landing.land(3)
    key = "spark.sql.sources.partitionOverwriteMode"
    before = spark.conf.get(key)
    spark.conf.set(key, mode)
    counts = (
        spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(landing.folder))
        .groupBy((F.col("id") % 2).alias("id")).count()
    )  # fmt: skip
    writer = counts.writeStream.format("laketier").options(**target.options(pipeline="events-v1", partition_by="id"))
    try:
        query = (
            writer.outputMode("complete").option("checkpointLocation", str(target.checkpoint))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
    finally:
        spark.conf.set(key, before)
    rows = spark.read.format("laketier").options(**target.options()).load().collect()
    assert sorted((row.id, row["count"]) for row in rows) == [(0, 15), (1, 15)]


def test_a_stream_without_pipeline_is_refused_when_it_starts(run_stream: Run, landing: Landing, target: Target) -> None:
    landing.land(1)
    with pytest.raises(PySparkException) as refusal:
        run_stream(landing, target, **{"lake.pipeline": None})
    cause = cause_of(refusal.value)
    assert isinstance(cause, ConfigError)
    assert "a stream needs lake.pipeline" in str(cause)
    assert not target.warehouse.exists()


def test_new_column_needs_merge_schema(run_stream: Run, spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(1)
    run_stream(landing, target)
    landing.land(1)
    wider = spark.readStream.schema(COLUMNS).parquet(str(landing.folder)).withColumn("double", F.col("id") * 2.0)
    with pytest.raises(PySparkException) as refusal:
        run_stream(landing, target, df=wider)
    cause = cause_of(refusal.value)
    assert isinstance(cause, IncompatibleTable)
    assert "mergeSchema" in str(cause)
    run_stream(landing, target, df=wider, mergeSchema=True)
    df = spark.read.format("laketier").options(**target.options()).load()
    doubles = {row.id: row.double for row in df.collect()}
    assert doubles == {i: (None if i < 10 else i * 2.0) for i in landing.ids}


def test_our_entry_holds_the_arrow_setting(spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(2)
    files = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(landing.folder))
    query = laketier.spark.stream(
        setting_seen_by_tasks(files, MAX_BYTES),
        target.options(pipeline="events-v1"),
        checkpoint=str(target.checkpoint),
        trigger={"availableNow": True},
    )
    assert MAX_BYTES not in spark.conf.getAll, "given back while the stream runs: it has a session of its own"
    query.awaitTermination()
    rows = laketier.spark.read(spark, target.options()).collect()
    assert [row.setting for row in rows] == [str(UNBOUNDED)] * 20


def test_our_entry_refuses_before_it_starts(spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(1)
    files = spark.readStream.schema("id long").parquet(str(landing.folder))
    with pytest.raises(ConfigError, match="a stream needs"):
        laketier.spark.stream(files, target.options(), checkpoint=str(target.checkpoint))
    named = target.options(pipeline="events-v1")
    with pytest.raises(ConfigError, match="update"):
        laketier.spark.stream(files, named, checkpoint=str(target.checkpoint), output_mode="update")
    laketier.spark.write(spark.range(1).select(F.lit("x").alias("id")), target.options())
    with pytest.raises(IncompatibleTable, match="'id'"):
        laketier.spark.stream(files, named, checkpoint=str(target.checkpoint))
    assert not target.checkpoint.exists()
