"""Batches through ``df.write.format("laketier")``, and what is said about bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import laketier.spark
from laketier.registry import configure
from laketier.spark.batch_writer import LakeBatchWriter
from laketier.spark.failures import cause_of
from laketier.spi import ConfigError, Gap, IncompatibleTable, LaketierError, UnsupportedType
from laketier.tiering import RoundOutcome
from spark_lake import Landing, Target


def save(df: DataFrame, target: Target, mode: str = "append", **options: Any) -> None:
    df.write.format("laketier").options(**target.options() | options).mode(mode).save()


def refused(df: DataFrame, target: Target, mode: str = "append", **options: Any) -> LaketierError:
    with pytest.raises(PySparkException) as refusal:
        save(df, target, mode, **options)
    cause = cause_of(refusal.value)
    assert cause is not None, str(refusal.value)
    return cause


def test_registered_without_a_call(spark: SparkSession, target: Target) -> None:
    fresh = spark.newSession()
    keys = {key: value for key, value in target.options().items() if key != "lake.table"}
    fresh.range(3).write.format("laketier").options(**keys).mode("append").save("db.events")
    assert fresh.read.format("laketier").options(**keys).load("db.events").count() == 3


@pytest.mark.quick_on("iceberg")
def test_a_named_batch_is_written_once(spark: SparkSession, each_target: Target) -> None:
    named = {"LAKE.Pipeline": "nightly", "lake.EPOCH": "0"}
    for _ in range(2):
        save(spark.range(10), each_target, **named)
        assert each_target.ids(spark) == list(range(10))
    files = each_target.data_files()
    save(spark.range(10), each_target, **named)
    assert each_target.data_files() == files, "nothing is written for an epoch that is there"
    save(spark.range(10, 20), each_target, **{"lake.pipeline": "nightly", "lake.epoch": "1"})
    assert each_target.ids(spark) == list(range(20))
    assert isinstance(refused(spark.range(1), each_target, **{"lake.pipeline": "nightly", "lake.epoch": "3"}), Gap)


def test_an_unnamed_batch_appends_each_time(spark: SparkSession, target: Target) -> None:
    save(spark.range(3), target)
    save(spark.range(3), target)
    assert target.ids(spark) == [0, 0, 1, 1, 2, 2]


@pytest.mark.quick_on("lance")
def test_overwrite(spark: SparkSession, each_target: Target) -> None:
    save(spark.range(10), each_target, **{"lake.pipeline": "nightly", "lake.epoch": "0"})
    save(spark.range(5), each_target, "overwrite")
    assert each_target.ids(spark) == list(range(5))
    save(spark.range(10, 12), each_target, "overwrite", **{"lake.pipeline": "nightly", "lake.epoch": "1"})
    assert each_target.ids(spark) == [10, 11]
    save(spark.range(0), each_target, "overwrite")
    assert each_target.ids(spark) == []


def _overwrite(lane: str, df: DataFrame, target: Target, source: Target | None = None, **options: str) -> None:
    asked = target.options() | options
    if lane == "data source":
        save(df, target, "overwrite", **options)
    elif lane == "data frame":
        laketier.spark.write(df, asked, mode="overwrite")
    else:
        laketier.spark.tier(df.sparkSession, (source or target).options(), asked, mode="overwrite")


@pytest.mark.parametrize("lane", ["data source", "data frame", "split"])
def test_a_session_that_overwrites_partitions_one_by_one(spark: SparkSession, target: Target, lane: str) -> None:
    """Iceberg and Delta would keep the other partitions then, so to replace all rows would lose them."""
    rows = spark.createDataFrame([(1, "a"), (2, "b")], "id long, p string")
    save(rows, target, **{"lake.partition-by": "p"})
    mode = "spark.sql.sources.partitionOverwriteMode"
    before = spark.conf.get(mode)
    spark.conf.set(mode, "Dynamic")
    try:
        with pytest.raises((PySparkException, ConfigError)) as refusal:
            _overwrite(lane, rows.limit(1), target)
        assert f"{mode} is dynamic" in str(refusal.value)
        assert target.ids(spark) == [1, 2]
        save(spark.range(3), target, "overwrite", **{"lake.table": "db.whole"})
        assert target.ids(spark) == [1, 2]
    finally:
        spark.conf.set(mode, before)


@pytest.mark.parametrize("lane", ["data source", "data frame", "split"])
def test_an_epoch_that_is_there_is_done_whatever_the_session_is_set_to_since(
    spark: SparkSession, target: Target, lane: str, tmp_path: Path
) -> None:
    """It replaces no row, so there is nothing to refuse."""
    rows = spark.createDataFrame([(1, "a"), (2, "b")], "id long, p string")
    source = Target(tmp_path / "source", "localfile")
    save(rows, source)
    named = {"lake.partition-by": "p", "lake.pipeline": "nightly"}
    mode = "spark.sql.sources.partitionOverwriteMode"
    before = spark.conf.get(mode)
    _overwrite(lane, rows, target, source, **named, **{"lake.epoch": "0"})
    spark.conf.set(mode, "dynamic")
    try:
        _overwrite(lane, rows, target, source, **named, **{"lake.epoch": "0"})
        with pytest.raises((PySparkException, ConfigError)) as refusal:
            _overwrite(lane, rows, target, source, **named, **{"lake.epoch": "1"})
    finally:
        spark.conf.set(mode, before)
    assert f"{mode} is dynamic" in str(refusal.value)
    assert target.ids(spark) == [1, 2]


def test_merge_schema(spark: SparkSession, target: Target) -> None:
    save(spark.range(2), target)
    wider = spark.range(2, 4).withColumn("twice", F.col("id") * 2)
    assert isinstance(refused(wider, target), IncompatibleTable)
    save(wider, target, mergeSchema="true")
    rows = spark.read.format("laketier").options(**target.options()).load().orderBy("id").collect()
    assert [(row.id, row.twice) for row in rows] == [(0, None), (1, None), (2, 4), (3, 6)]


def test_a_failed_job_changes_nothing(spark: SparkSession, target: Target) -> None:
    save(spark.range(1), target)
    before = target.data_files()
    broken = spark.range(0, 100, numPartitions=2).select(
        F.when(F.col("id") < 99, F.col("id")).otherwise(F.raise_error(F.lit("a bad row")).cast("long")).alias("id")
    )
    with pytest.raises(PySparkException, match="a bad row"):
        save(broken, target)
    assert target.data_files() == before
    assert target.ids(spark) == [0]


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"lake.pipline": "x"}, ConfigError, "lake.pipeline"),
        ({"lake.partition-by": "nme"}, ConfigError, "'nme' is not a column"),
    ],
)
def test_bad_options(
    spark: SparkSession, target: Target, options: dict[str, str], kind: type[LaketierError], says: str
) -> None:
    """One of the options alone, and one of the rows. The others, too: `tests/unit/spark/test_bad_options.py`."""
    error = refused(spark.range(1), target, **options)
    assert isinstance(error, kind)
    assert says in str(error)
    assert not target.data_files()


def test_types_that_spark_cannot_give(spark: SparkSession, target: Target) -> None:
    months = spark.sql("SELECT INTERVAL '3' MONTH AS months")
    error = refused(months, target)
    assert isinstance(error, UnsupportedType)
    assert "'months'" in str(error)


def test_a_batch_that_is_there_says_that_its_rows_were_not_looked_at(
    spark: SparkSession, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows that came to the input since are missing, and nothing told so."""
    config = target.options(pipeline="nightly", epoch=0)
    assert laketier.spark.write(spark.range(10), config).rows == 10
    assert "epoch 0" not in caplog.text
    again = laketier.spark.write(spark.range(12), config)
    assert (again.outcome, again.rows, len(target.ids(spark))) == (RoundOutcome.ALREADY_THERE, 10, 10)
    told = "epoch 0 is in the table already, with 10 rows: no row of this batch was written"
    assert caplog.text.count(told) == 1
    assert "write those with lake.epoch 1" in caplog.text
    writer = LakeBatchWriter(configure(config), spark.range(1).schema, overwrite=False)
    writer.commit([writer.write(iter([]))])
    assert caplog.text.count(told) == 2


@pytest.mark.deep
def test_foreach_batch_with_its_id_as_epoch(spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(2)
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(landing.folder))

    def twice(df: DataFrame, epoch: int) -> None:
        for _ in range(2):
            save(df, target, **{"lake.pipeline": "each", "lake.epoch": str(epoch)})

    query = stream.writeStream.foreachBatch(twice).option("checkpointLocation", str(target.checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    assert target.ids(spark) == landing.ids


class TestSql:
    """Spark hands options to SQL's writers on some ways only."""

    @pytest.fixture(autouse=True)
    def _drop(self, spark: SparkSession) -> Any:
        yield
        spark.sql("DROP TABLE IF EXISTS lake_events")
        spark.catalog.dropTempView("lake_view")

    @staticmethod
    def clause(target: Target) -> str:
        return ", ".join(f"'{key}' = '{value}'" for key, value in target.options().items())

    def test_insert_into_a_created_table_says_where_its_options_went(self, spark: SparkSession, target: Target) -> None:
        spark.sql(f"CREATE TABLE lake_events (id BIGINT) USING laketier OPTIONS ({self.clause(target)})")
        with pytest.raises(PySparkException) as refusal:
            spark.sql("INSERT INTO lake_events VALUES (1)")
        cause = cause_of(refusal.value)
        assert isinstance(cause, ConfigError)
        assert "CREATE TABLE" in str(cause)
        assert "INSERT INTO t WITH" in str(cause)
        assert "TEMPORARY VIEW" in str(cause)

    def test_the_ways_that_the_message_names_work(self, spark: SparkSession, target: Target) -> None:
        spark.sql(f"CREATE TABLE lake_events (id BIGINT) USING laketier OPTIONS ({self.clause(target)})")
        spark.sql(f"INSERT INTO lake_events WITH ({self.clause(target)}) VALUES (1)")
        spark.sql(f"CREATE TEMPORARY VIEW lake_view USING laketier OPTIONS ({self.clause(target)})")
        spark.sql("INSERT INTO lake_view VALUES (2)")
        assert spark.sql("SELECT id FROM lake_view ORDER BY id").collect() == [(1,), (2,)]
