"""The two lanes that we drive: `laketier.spark.write` and `tier`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import laketier.spark
from laketier.connectors import ParquetFolder
from laketier.spark.arrow_batches import MAX_BYTES
from laketier.spi import (
    ConfigError,
    CorruptTable,
    IncompatibleData,
    LakeSplit,
    Leaf,
    Op,
    TokenMismatch,
    UnsupportedType,
)
from laketier.tables import group_splits
from laketier.tiering import RoundOutcome
from spark_lake import Landing, Target, setting_seen_by_tasks


def named(target: Target, epoch: int) -> dict[str, str]:
    return target.options(pipeline="nightly", epoch=epoch)


@pytest.mark.quick_on("delta")
def test_write_is_exact_and_idempotent(spark: SparkSession, each_target: Target) -> None:
    first = laketier.spark.write(spark.range(100), named(each_target, 0))
    assert (first.outcome, first.rows) == (RoundOutcome.PUBLISHED, 100)
    ran: list[int] = []
    counted = spark.range(100).withColumn("id", F.col("id") + 1)
    again = laketier.spark.write(counted, named(each_target, 0))
    assert (again.outcome, again.rows, ran) == (RoundOutcome.ALREADY_THERE, 100, [])
    assert each_target.ids(spark) == list(range(100))
    laketier.spark.write(spark.range(3), each_target.options(), mode="overwrite")
    assert each_target.ids(spark) == [0, 1, 2]


def test_write_holds_the_arrow_setting_for_its_own_work(spark: SparkSession, target: Target) -> None:
    laketier.spark.write(setting_seen_by_tasks(spark.range(2), MAX_BYTES), target.options())
    rows = laketier.spark.read(spark, target.options()).collect()
    assert {row.setting for row in rows} == {str(2**31 - 1)}
    assert MAX_BYTES not in spark.conf.getAll


def test_a_failed_write_changes_nothing(spark: SparkSession, target: Target) -> None:
    broken = spark.range(0, 100, numPartitions=2).select(
        F.when(F.col("id") < 99, F.col("id")).otherwise(F.raise_error(F.lit("a bad row")).cast("long")).alias("id")
    )
    with pytest.raises(Exception, match="a bad row"):
        laketier.spark.write(broken, named(target, 0))
    assert target.data_files() == []
    assert laketier.spark.write(spark.range(5), named(target, 0)).outcome is RoundOutcome.PUBLISHED


def test_rows_that_do_not_fit_end_in_our_error(spark: SparkSession, target: Target) -> None:
    laketier.spark.write(spark.range(1).select(F.col("id").cast("int")), target.options())
    with pytest.raises(IncompatibleData, match="'id'"):
        laketier.spark.write(spark.range(2**40, 2**40 + 1), target.options())
    assert target.ids(spark) == [0]


def test_mode_is_checked(spark: SparkSession, target: Target) -> None:
    with pytest.raises(ConfigError, match="upsert"):
        laketier.spark.write(spark.range(1), target.options(), mode="upsert")


@pytest.mark.quick_on("lance")
def test_tier_a_folder(spark: SparkSession, landing: Landing, each_target: Target) -> None:
    landing.land(5)
    folder = ParquetFolder(str(landing.folder))
    result = laketier.spark.tier(spark, folder, named(each_target, 0), tasks=2)
    assert (result.outcome, result.rows) == (RoundOutcome.PUBLISHED, 50)
    assert laketier.spark.tier(spark, folder, named(each_target, 0)).outcome is RoundOutcome.ALREADY_THERE
    assert each_target.ids(spark) == landing.ids
    landing.land(1)
    with pytest.raises(TokenMismatch, match="other input"):
        laketier.spark.tier(spark, folder, named(each_target, 0))
    assert each_target.ids(spark) == landing.ids[:50]


@pytest.mark.quick_on("iceberg")
def test_tier_a_table_into_another(spark: SparkSession, landing: Landing, each_target: Target, tmp_path: Path) -> None:
    landing.land(4)
    laketier.spark.tier(spark, ParquetFolder(str(landing.folder)), each_target.options())
    copy = Target(tmp_path / "copy", "localfile")
    result = laketier.spark.tier(
        spark, each_target.options(), named(copy, 0), columns=["name", "id"], filters=[Leaf("id", Op.LT, 25)]
    )
    assert result.rows == 25
    assert copy.ids(spark) == landing.ids[:25]
    names = laketier.spark.read(spark, copy.options())
    assert names.columns == ["name", "id"]
    assert names.where("name = 'näme 24'").count() == 1


def test_a_filter_on_a_column_that_is_not_wanted(spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(2)
    laketier.spark.tier(
        spark, ParquetFolder(str(landing.folder)), target.options(), columns=["id"], filters=[Leaf("name", Op.IS_NULL)]
    )
    assert target.ids(spark) == [0, 7, 14]


def test_row_groups_are_split_and_balanced(spark: SparkSession, tmp_path: Path, target: Target) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table({"id": pa.array(range(10_000), pa.int64())})
    pq.write_table(table, tmp_path / "in/one.parquet", row_group_size=1000)
    folder = ParquetFolder(str(tmp_path / "in"), split_bytes=1)
    result = laketier.spark.tier(spark, folder, target.options(), tasks=4)
    assert (result.rows, result.files) == (10_000, 4)
    assert target.ids(spark) == list(range(10_000))


def test_grouping() -> None:
    splits = [LakeSplit(index=i, bytes=size) for i, size in enumerate([10, 1, 1, 1, 7, 4])]
    groups = group_splits(splits, 2)
    assert sorted(s.index for group in groups for s in group) == list(range(6))
    assert sorted(sum(s.bytes or 0 for s in group) for group in groups) == [12, 12]
    assert group_splits([], 3) == []
    assert len(group_splits(splits[:1], 3)) == 1


def test_a_folder_says_what_is_wrong_with_it(spark: SparkSession, tmp_path: Path, target: Target) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        laketier.spark.tier(spark, ParquetFolder(str(tmp_path / "nothing")), target.options())
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="no Parquet file"):
        laketier.spark.tier(spark, ParquetFolder(str(tmp_path / "empty")), target.options())
    pq.write_table(pa.table({"id": [1]}), tmp_path / "empty/a.parquet")
    (tmp_path / "empty/b.parquet").write_bytes(b"PAR1 half a file")
    with pytest.raises(CorruptTable, match=r"b\.parquet"):
        laketier.spark.tier(spark, ParquetFolder(str(tmp_path / "empty")), target.options())
    pq.write_table(pa.table({"id": [1], "more": [2]}), tmp_path / "empty/b.parquet")
    with pytest.raises(IncompatibleData, match="more"):
        laketier.spark.tier(spark, ParquetFolder(str(tmp_path / "empty")), target.options())
    assert not target.data_files()


def test_a_variant_is_refused_by_name_in_every_lane_and_makes_no_table(spark: SparkSession, target: Target) -> None:
    variants = spark.range(1).select("id", F.parse_json(F.lit('{"a": 1}')).alias("v"))
    with pytest.raises(UnsupportedType, match=r"'v' is a variant.*to_json"):
        laketier.spark.write(variants, named(target, 0))
    with pytest.raises(Exception, match="'v' is a variant"):
        variants.write.format("laketier").mode("append").options(**named(target, 0)).save()
    assert not target.folder.exists() or list(target.folder.rglob("*")) == []
    text = variants.select("id", F.to_json("v").alias("v"))
    assert laketier.spark.write(text, named(target, 0)).rows == 1
    assert laketier.spark.read(spark, target.options()).collect()[0].v == '{"a":1}'
