"""Spark's own reader reads a snapshot as Arrow does: whatever the session is set to, and however files are named."""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

import laketier.spark
from laketier.registry import configure, open_lake
from laketier.spi import LakeSource, Leaf, Not, Op, Predicate, ScanPlan, ScanRequest
from laketier.tables import open_source
from spark_lake import Target

NEVER_FOLDED = {"localfile.fold-files": "0"}
"""So that Spark's own reader reads small files, too."""
Set = Callable[..., None]


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[Set]:
    """Set keys of the session below ``spark.sql.``, and take all of it back."""
    before: dict[str, str | None] = {}

    def change(**keys: str) -> None:
        for name, value in keys.items():
            key = "spark.sql." + name.replace("__", ".")
            before.setdefault(key, spark.conf.getAll.get(key))
            spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def is_native(df: DataFrame) -> bool:
    plan = df._jdf.queryExecution().executedPlan().toString()
    return "FileScan parquet" in plan and "MapInArrow" not in plan


@pytest.mark.parametrize("mode", ["LEGACY", "EXCEPTION"])
def test_days_before_the_calendar(spark: SparkSession, target: Target, settings: Set, mode: str) -> None:
    """A session may read files of Spark 2 by the Julian calendar. Ours are by the one of today."""
    rows = spark.sql("SELECT 1 AS id, DATE'1500-01-01' AS d, TIMESTAMP'1500-01-01 00:00:00' AS t")
    laketier.spark.write(rows, target.options(**NEVER_FOLDED))
    settings(parquet__datetimeRebaseModeInRead=mode)
    read = laketier.spark.read(spark, target.options())
    assert is_native(read)
    assert read.selectExpr("string(d)", "string(t)").first() == ("1500-01-01", "1500-01-01 00:00:00")


def test_a_file_that_is_gone_is_no_fewer_rows(spark: SparkSession, target: Target, settings: Set) -> None:
    for _ in range(2):
        laketier.spark.write(spark.range(10).coalesce(1), target.options(**NEVER_FOLDED))
    settings(files__ignoreMissingFiles="true", files__ignoreCorruptFiles="true")
    read = laketier.spark.read(spark, target.options())
    assert is_native(read)
    assert read.count() == 20
    lost = next(Path(read.inputFiles()[0].removeprefix("file://")).parent.glob("*.parquet"))
    lost.write_bytes(b"PAR1 damaged PAR1")
    with pytest.raises(Exception, match=r"(?i)parquet"):
        laketier.spark.read(spark, target.options()).collect()
    lost.unlink()
    with pytest.raises(Exception, match=re.escape(lost.name)):
        read.collect()


def test_files_that_the_session_passes_over(spark: SparkSession, target: Target, settings: Set) -> None:
    """Spark 4.3 has a pattern of names that its own reader leaves out; older ones don't know the setting."""
    laketier.spark.write(spark.range(5), target.options(**NEVER_FOLDED))
    settings(files__ignoredPathSegmentRegex="part|parquet")
    read = laketier.spark.read(spark, target.options())
    assert is_native(read)
    assert read.count() == 5


def test_literals_mean_what_they_say(spark: SparkSession, target: Target, settings: Set) -> None:
    """Days of each year, and moments where ``timestamp`` has no zone."""
    rows = spark.sql(
        "SELECT id, date_add(DATE'0001-01-01', int(id * 1000000)) AS d, timestamp(id * 43200) AS t FROM range(3)"
    )
    laketier.spark.write(rows, target.options(**NEVER_FOLDED))
    settings(timestampType="TIMESTAMP_NTZ", session__timeZone="America/New_York")
    eight = Leaf("t", Op.GE, dt.datetime(1970, 1, 1, 8, tzinfo=dt.UTC))
    asked: list[tuple[Predicate, list[int]]] = [
        (Leaf("d", Op.EQ, dt.date.min), [0]),
        (Leaf("d", Op.IN, (dt.date.min, dt.date(999, 1, 1))), [0]),
        (Leaf("d", Op.GT, dt.date.min), [1, 2]),
        (Leaf("d", Op.LE, dt.date.max), [0, 1, 2]),
        (eight, [1, 2]),
        (Not(eight), [0]),
    ]
    for predicate, expected in asked:
        read = laketier.spark.read(spark, target.options(), columns=["id"], filters=[predicate])
        assert is_native(read)
        assert sorted(row.id for row in read.collect()) == expected, str(predicate)


def test_both_zeros_are_one_number_where_a_file_has_a_dictionary_of_floats(spark: SparkSession, tmp_path: Path) -> None:
    """Others write one. Parquet's reader skips by it, and takes -0.0 for another number, which is less than 0.0. The
    conditions are those of `read`, and of queries on what it gives."""
    target = Target(tmp_path, "delta")
    for zero, other in ((-0.0, -5.0), (0.0, 5.0)):
        rows = pa.table({"d": [zero, other, zero], "f": pa.array([zero, other, zero], pa.float32())})
        deltalake.write_deltalake(target.warehouse / "db" / "events", rows, mode="append")
    asked: list[tuple[Predicate, int]] = [
        (Leaf("d", Op.EQ, 0.0), 4),
        (Leaf("f", Op.IN, (-0.0, 7.0)), 4),
        (Leaf("d", Op.LE, -0.0), 5),
        (Not(Leaf("f", Op.LT, 0.0)), 5),
    ]
    reads = [laketier.spark.read(spark, target.options(), filters=[each]) for each, _ in asked]
    assert is_native(reads[0])
    reads += [laketier.spark.read(spark, target.options()).where(sql) for sql in ("f = 0", "d >= 0")]
    counted = [
        df.agg(functions.count("*").alias("rows"), functions.lit(number).alias("number"))
        for number, df in enumerate(reads)
    ]
    found = {row.number: row.rows for row in functools.reduce(DataFrame.union, counted).collect()}  # one job
    assert [found[number] for number in range(len(reads))] == [*(rows for _, rows in asked), 4, 5]


def test_a_column_with_a_dot_in_its_name(spark: SparkSession, target: Target) -> None:
    laketier.spark.write(spark.sql("SELECT 1 AS `a.b`, named_struct('b', 2) AS a"), target.options(**NEVER_FOLDED))
    assert laketier.spark.read(spark, target.options(), columns=["a.b"]).collect() == [(1,)]


@pytest.mark.parametrize("name", ["_1.parquet", ".1.parquet", "1.parquet._COPYING_"])
def test_files_that_spark_passes_over(
    spark: SparkSession, target: Target, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Tables of others may have such files, and Spark reads none of them, also by its very path."""
    for number in range(2):
        laketier.spark.write(spark.range(number, number + 1).coalesce(1), target.options(**NEVER_FOLDED))
    source = open_source(configure(target.options()))
    plan = type(source).plan

    def hidden(self: LakeSource, request: ScanRequest) -> ScanPlan:
        planned: ScanPlan = plan(self, request)
        first, *others = planned.splits
        path = Path(str(first.plain_parquet))
        (link := path.with_name(name)).unlink(missing_ok=True)
        link.hardlink_to(path)
        return replace(planned, splits=(replace(first, plain_parquet=str(link)), *others))

    monkeypatch.setattr(type(source), "plan", hidden)
    assert sorted(row.id for row in laketier.spark.read(spark, target.options()).collect()) == [0, 1]
    assert (
        spark.read.schema("id long")
        .parquet(str(Path(open_lake(configure(target.options())).load_table().location) / name))
        .count()
        == 0
    ), "as Spark does"
