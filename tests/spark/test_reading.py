"""Reading: Spark's own reader where it can, Arrow splits elsewhere, the data source everywhere; the same rows."""

from __future__ import annotations

import datetime as dt
import functools
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import laketier.spark
from laketier.connectors import ParquetFolder
from laketier.registry import configure, open_lake
from laketier.spark import reading
from laketier.spark.reading import as_column
from laketier.spark.schema import for_spark, reading_schema, spark_schema, table_schema
from laketier.spi import And, ConfigError, IncompatibleData, Leaf, Not, Op, Or, Predicate, TableNotFound, to_arrow
from laketier.tables import open_source, plan_scan, scan_request
from laketier_conformance.oracle import rows_for
from spark_lake import Landing, Target

NEVER_FOLDED = {"localfile.fold-files": "0"}
"""So that Spark's own reader reads small files, too."""
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def written(spark: SparkSession, landing: Landing, each_target: Target) -> Target:
    landing.land(3)
    laketier.spark.tier(spark, ParquetFolder(str(landing.folder)), each_target.options())
    return each_target


@pytest.mark.quick_on("delta", "localfile")
def test_all_ways_give_the_same_rows(spark: SparkSession, landing: Landing, written: Target) -> None:
    expected = sorted(spark.read.schema("id long, name string, at timestamp").parquet(str(landing.folder)).collect())
    config = configure(written.options())
    source = open_source(config)
    planned = plan_scan(source, scan_request(config))
    assert sorted(laketier.spark.read(spark, config).collect()) == expected
    assert sorted(reading._splits(spark, planned).collect()) == expected
    assert sorted(spark.read.format("laketier").options(**written.options()).load().collect()) == expected


@pytest.mark.quick_on("iceberg", "lance")
def test_columns_and_filters(spark: SparkSession, landing: Landing, written: Target) -> None:
    either = Or((Leaf("id", Op.IN, (3, 21)), And((Leaf("id", Op.GE, 27), Not(Leaf("name", Op.IS_NULL))))))
    df = laketier.spark.read(spark, written.options(), columns=["name"], filters=[either])
    assert df.columns == ["name"]
    assert sorted(str(row.name) for row in df.collect()) == sorted(["näme 3", "None", "näme 27", "näme 29"])
    some = spark.read.format("laketier").schema("name string").options(**written.options()).load()
    assert some.where("name like '%9'").count() == 3
    assert laketier.spark.read(spark, written.options(), columns=[]).count() == 30


def test_a_reader_outlives_the_folds_of_a_stream(spark: SparkSession, landing: Landing, target: Target) -> None:
    """A commit that folds small files moves them. Spark opens files by the paths that were planned; so it is given no
    path of a small one, and reads large files by itself beside them."""
    options = target.options(**{"localfile.fold-files": "2", "localfile.fold-file-bytes": "20000"})
    large = spark.range(10**6, 10**6 + 50_000).selectExpr("id", "uuid() name", "timestamp_micros(id) at").coalesce(1)
    large.write.format("laketier").options(**options).mode("append").save()
    for number in range(2):
        rows = spark.createDataFrame([(number, "small", dt.datetime(2026, 1, 1))], "id long, name string, at timestamp")
        rows.coalesce(1).write.format("laketier").options(**options).mode("append").save()
    wanted = laketier.spark.read(spark, options, columns=["id"], filters=[Leaf("name", Op.NOT_NULL)])
    everything = laketier.spark.read(spark, options)
    plan = everything._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet" in plan
    assert "MapInArrow" in plan
    before = sorted(row.id for row in everything.select("id").collect())
    location = open_lake(configure(options)).load_table().location
    files = set(Path(location).glob("*.parquet"))
    rows.coalesce(1).write.format("laketier").options(**options).mode("append").save()
    assert len(files - set(Path(location).glob("*.parquet"))) == 2, "the two small files were folded"
    assert before == [0, 1, *range(10**6, 10**6 + 50_000)]
    assert sorted(row.id for row in wanted.collect()) == before
    assert everything.count() == len(before)


def test_local_files_are_read_by_sparks_own_reader(spark: SparkSession, landing: Landing, target: Target) -> None:
    landing.land(1)
    laketier.spark.tier(spark, ParquetFolder(str(landing.folder)), target.options(partition_by="name", **NEVER_FOLDED))
    df = laketier.spark.read(spark, target.options(), columns=["id", "name"])
    plan = df._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet" in plan
    assert sorted(row.id for row in df.collect()) == landing.ids
    assert df.where("name is null").count() == 2


def test_sparks_own_reader_filters_as_arrow_does(spark: SparkSession, target: Target) -> None:
    """For Spark NaN is a number, more than any other; a moment without a zone is in the zone of the session."""
    naive = dt.datetime(2026, 2, 3, 4, 5, 6)
    rows = spark.sql(
        """SELECT * FROM VALUES (0, 1.5D, TIMESTAMP_NTZ'2026-02-03 04:05:06'), (1, double('NaN'), null),
        (2, -0.0D, TIMESTAMP_NTZ'2026-02-03 13:05:06'), (3, null, TIMESTAMP_NTZ'2026-02-02 19:05:06') AS t(id, v, at)"""
    )
    laketier.spark.write(rows, target.options(**NEVER_FOLDED))
    kept = spark.read.format("laketier").options(**target.options()).load().toArrow()
    nan = float("nan")
    comparisons = [Leaf("v", op, value) for op in (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE) for value in (0.0, nan)]
    comparisons += [Leaf("v", Op.IN, (1.5, nan)), Leaf("v", Op.IN, (nan,))]
    each = [Leaf("at", Op.EQ, naive), Leaf("at", Op.GE, naive), Leaf("at", Op.IN, (naive,))]
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        asked = [*comparisons, *map(Not, comparisons), *each]
        reads = [laketier.spark.read(spark, target.options(), filters=[predicate]) for predicate in asked]
        tagged = [df.select("id", F.lit(number).alias("number")) for number, df in enumerate(reads)]
        answers = functools.reduce(DataFrame.union, tagged).collect()  # one job
        assert "FileScan parquet" in reads[0]._jdf.queryExecution().executedPlan().toString()
        for number, predicate in enumerate(asked):
            found = sorted(row.id for row in answers if row.number == number)
            assert found == sorted(rows_for(predicate, kept)["id"].to_pylist()), str(predicate)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_sparks_conditions_are_as_exact_as_arrows(spark: SparkSession) -> None:
    """For Spark a long beside a double is a double, and a literal of more digits than its decimals is an error."""
    rows = spark.sql(
        """SELECT * FROM VALUES (0L, 0.1D, 1.50BD), (1L, double('NaN'), 0.10BD), (null, null, null),
        (9007199254740993L, 9007199254740992D, -1.50BD) AS t(id, v, d)"""
    )
    kept = rows.toArrow()
    numbers = (2**53 + 1, 2**70, -(2**70), 0.5, -0.0, 2.0**53, Decimal("1.5"), Decimal("0.1"), Decimal("1e400"))
    nans = (float("nan"), Decimal("NaN"))
    orders = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)
    asked: list[Predicate] = [
        leaf
        for name in kept.column_names
        for leaf in (
            *(Leaf(name, op, value) for op in orders for value in (*numbers, *nans)),
            *(Leaf(name, Op.IN, values) for values in ((), (None,), nans, numbers, (1, None, *nans))),
        )
    ]
    asked += list(map(Not, asked))
    answers = rows.select(*(as_column(each, kept.schema).alias(str(n)) for n, each in enumerate(asked))).toArrow()
    for found, predicate in zip(answers.columns, asked, strict=True):
        wanted = kept.filter(to_arrow(predicate, kept.schema))["d"].to_pylist()
        assert kept.filter(found)["d"].to_pylist() == wanted, str(predicate)


def test_queries_on_one_dataframe_do_not_share_filters(spark: SparkSession, landing: Landing, target: Target) -> None:
    """As they would in Spark 4.3.0 with a data source that takes filters: docs/upstream."""
    landing.land(3)
    laketier.spark.tier(spark, ParquetFolder(str(landing.folder)), target.options())
    spark.conf.set(PUSHDOWN, "true")
    try:
        loaded = spark.read.format("laketier").options(**target.options()).load()
        assert loaded.where("id > 20 and name is not null").count() == 7
        assert loaded.count() == 30
        assert loaded.where("id = 3 or id = 4").count() == 2
        assert loaded.where("id > 27").union(loaded.where("id < 2")).count() == 4
    finally:
        spark.conf.unset(PUSHDOWN)


def test_time_travel(spark: SparkSession, target: Target) -> None:
    first = laketier.spark.write(spark.range(3), target.options()).snapshot_id
    laketier.spark.write(spark.range(3), target.options())
    assert laketier.spark.read(spark, target.options(snapshot_id=first)).count() == 3
    old = spark.read.format("laketier").options(**target.options(snapshot_id=first)).load()
    assert old.count() == 3
    assert len(target.ids(spark)) == 6


def test_empty_and_missing_tables(spark: SparkSession, target: Target) -> None:
    with pytest.raises(TableNotFound):
        laketier.spark.read(spark, target.options())
    laketier.spark.write(spark.range(0), target.options())
    assert laketier.spark.read(spark, target.options()).collect() == []
    assert spark.read.format("laketier").options(**target.options()).load().collect() == []
    with pytest.raises(ConfigError, match="nothing"):
        laketier.spark.read(spark, target.options(), columns=["nothing"])


def test_every_spark_type_survives(spark: SparkSession, target: Target) -> None:
    df = spark.sql(
        """SELECT true AS b, 1Y AS i8, 2S AS i16, 3 AS i32, 4L AS i64, 1.5F AS f32, 2.5D AS f64,
        CAST(123.45 AS DECIMAL(18, 2)) AS dec, 'x' AS s, X'00FF' AS bin, DATE'2026-02-03' AS d,
        TIMESTAMP'2026-02-03 04:05:06.000007' AS ts, TIMESTAMP_NTZ'2026-02-03 04:05:06' AS ntz,
        array(1, null) AS list, map('k', 1.5D) AS m, named_struct('a', 1, 'b', array('y')) AS st, CAST(null AS INT) AS n
        """
    )
    laketier.spark.write(df, target.options())
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        other_zone = df.withColumn("i64", F.lit(5).cast("long"))
        laketier.spark.write(other_zone, target.options())
        for read in (
            laketier.spark.read(spark, target.options()),
            spark.read.format("laketier").options(**target.options()).load(),
        ):
            assert read.schema.simpleString() == df.schema.simpleString()
            rows = sorted(read.collect(), key=lambda row: row.i64)
            assert rows == [df.collect()[0], other_zone.collect()[0]]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_arrow_types_without_a_spark_type_are_widened_or_refused() -> None:
    schema = pa.schema(
        [
            pa.field("u", pa.uint32(), nullable=False),
            pa.field("l", pa.large_string()),
            pa.field("v", pa.list_(pa.float32(), 2)),
            pa.field("ns", pa.timestamp("ns", "UTC")),
            pa.field("big", pa.uint64()),
            pa.field("dict", pa.dictionary(pa.int8(), pa.string())),
        ]
    )
    spark = spark_schema(schema)
    assert spark.simpleString() == (
        "struct<u:bigint,l:string,v:array<float>,ns:timestamp,big:decimal(20,0),dict:string>"
    )
    when = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = [{"u": 2**32 - 1, "l": "x", "v": [1.0, 2.0], "ns": when, "big": 2**64 - 1, "dict": "d"}]
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    read = for_spark(batch, reading_schema(spark))
    assert read.schema.equals(reading_schema(spark))
    assert read.to_pylist() == [rows[0] | {"big": Decimal(2**64 - 1)}]
    lossy = batch.set_column(3, schema.field(3), pa.array([1], pa.timestamp("ns", "UTC")))
    with pytest.raises(IncompatibleData, match="'ns'"):
        for_spark(lossy, reading_schema(spark))
    assert table_schema(spark).field("u").nullable


def test_columns_that_only_folders_have_are_lost_by_no_reader(spark: SparkSession, target: Target) -> None:
    """Spark's own reader would give nulls for them, and guess that 007 is a number in a plain read."""
    options = target.options(
        **{"partition-by": "name, day", "localfile.partition-columns-in-files": "false", "localfile.fold-files": "0"}
    )
    rows = [(1, "007", dt.date(2026, 11, 24)), (2, "a/b", None), (3, None, dt.date(1969, 12, 31))]
    frame = spark.createDataFrame(rows, "id long, name string, day date")
    frame.write.format("laketier").options(**options).mode("append").save()
    assert sorted(map(tuple, laketier.spark.read(spark, options).collect())) == rows
    assert sorted(map(tuple, spark.read.format("laketier").options(**options).load().collect())) == rows
    seven = laketier.spark.read(spark, options, columns=["id"], filters=[Leaf("name", Op.EQ, "007")])
    assert [row.id for row in seven.collect()] == [1]
    lake = open_lake(configure(options))
    setting, read = lake.plugin.open_with(lake.storage.catalog().load_table(lake.config.table))["Spark"].split("; ")
    inferred = spark.conf.get("spark.sql.sources.partitionColumnTypeInference.enabled")
    try:
        exec(setting, {"spark": spark})  # noqa: S102 - it is our own
        assert sorted(map(tuple, eval(read, {"spark": spark}).collect())) == rows  # noqa: S307 - likewise
    finally:
        spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", inferred)


def test_folders_by_time_hide_no_row_from_spark(spark: SparkSession, target: Target) -> None:
    """Neither from its own reader, also rows without a time, nor from a filter that skips folders."""
    options = target.options(
        **{"partition-by": "name, hour(at)", "localfile.time-pattern": "%Y/%m/%d/%H", "localfile.fold-files": "0"}
    )
    moments = [dt.datetime(2026, 11, 24, 10, 59), dt.datetime(2026, 11, 24, 11), None]
    rows = [(number, name, at) for number, (name, at) in enumerate((n, at) for n in ("a/b", None) for at in moments)]
    spark.createDataFrame(rows, "id long, name string, at timestamp").write.format("laketier").options(**options).mode(
        "append"
    ).save()
    location = str(open_source(configure(options)).table.location)
    plain = spark.read.option("recursiveFileLookup", True).parquet(location)
    assert sorted(row.id for row in plain.collect()) == list(range(6))
    assert laketier.spark.read(spark, options).count() == 6
    eleven = Leaf("at", Op.GE, dt.datetime(2026, 11, 24, 11, tzinfo=dt.UTC))
    assert laketier.spark.read(spark, options, filters=[eleven]).count() == 2
