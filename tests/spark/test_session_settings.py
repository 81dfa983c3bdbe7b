"""Rows are the same whatever a session is set to, by each way into a table and out of it. What a setting changes of a
DataFrame itself, before it is written or after it was read, is Spark's own; so rows are made, and compared, by
expressions that no setting has a say in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import laketier.spark
from laketier.registry import configure
from laketier.spi import IncompatibleTable, ScanRequest
from laketier.tables import open_source
from laketier.tables.scan import scan
from spark_lake import Target

ROWS = """
SELECT CAST(id AS BIGINT) AS id, CASE WHEN id = 1 THEN NULL ELSE concat('näme ', id) END AS s,
  timestamp_micros(CASE id WHEN 0 THEN -14831683200000001 WHEN 2 THEN 1711848600123456 END) AS at,
  CASE id WHEN 0 THEN TIMESTAMP_NTZ'1500-01-01 00:00:00.000001' WHEN 2 THEN TIMESTAMP_NTZ'2024-03-31 02:30:00' END
    AS wall,
  date_from_unix_date(CASE id WHEN 0 THEN -719162 WHEN 2 THEN 19813 END) AS day,
  CAST(id AS DECIMAL(20, 2)) / 4 AS dec, CASE id WHEN 0 THEN double('NaN') WHEN 2 THEN double('-0.0') END AS f,
  unhex('00FF') AS b, array(CAST(id AS INT), NULL) AS arr, named_struct('x', CAST(id AS INT), 'y', 'z') AS st,
  map('k', CAST(id AS INT)) AS m, concat('0', id % 2) AS p
FROM VALUES (0), (1), (2), (3) AS t(id)
"""
SEEN = (
    "id",
    "s",
    "unix_micros(at)",
    "CAST(wall AS STRING)",
    "unix_date(day)",
    "CAST(dec AS STRING)",
    "CAST(f AS STRING)",
    "hex(b)",
    "to_json(named_struct('arr', arr, 'st', st, 'm', m))",
    "p",
)
SETTINGS = {
    "spark.sql.ansi.enabled": ("false", "true"),
    "spark.sql.caseSensitive": ("true", "false"),
    "spark.sql.session.timeZone": ("America/New_York", "+14:00"),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ", "TIMESTAMP_LTZ"),
    "spark.sql.storeAssignmentPolicy": ("LEGACY", "STRICT"),
    "spark.sql.parquet.outputTimestampType": ("INT96", "TIMESTAMP_MILLIS"),
    "spark.sql.parquet.int96TimestampConversion": ("true", "false"),
    "spark.sql.parquet.fieldId.read.enabled": ("true", "false"),
    "spark.sql.parquet.fieldId.read.ignoreMissing": ("true", "false"),
    "spark.sql.parquet.fieldId.write.enabled": ("false", "true"),
    "spark.sql.parquet.datetimeRebaseModeInRead": ("LEGACY", "EXCEPTION"),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("LEGACY", "EXCEPTION"),
    "spark.sql.parquet.int96RebaseModeInRead": ("LEGACY", "EXCEPTION"),
    "spark.sql.parquet.int96RebaseModeInWrite": ("LEGACY", "EXCEPTION"),
    "spark.sql.parquet.binaryAsString": ("true", "false"),
    "spark.sql.parquet.int96AsTimestamp": ("false", "true"),
    "spark.sql.parquet.inferTimestampNTZ.enabled": ("false", "true"),
    "spark.sql.parquet.enableVectorizedReader": ("false", "true"),
    "spark.sql.parquet.writeLegacyFormat": ("true", "false"),
    "spark.sql.legacy.parquet.nanosAsLong": ("true", "false"),
    "spark.sql.legacy.timeParserPolicy": ("LEGACY", "CORRECTED"),
    "spark.sql.legacy.castComplexTypesToString.enabled": ("true", "false"),
    "spark.sql.sources.partitionColumnTypeInference.enabled": ("false", "true"),
    "spark.sql.sources.useV1SourceList": ("", "avro,csv,json,kafka,orc,parquet,text"),
    "spark.sql.execution.arrow.maxRecordsPerBatch": ("1", "10000"),
    "spark.sql.execution.arrow.maxBytesPerBatch": ("1", "2147483647"),
    "spark.sql.execution.arrow.pyspark.enabled": ("true", "false"),
    "spark.sql.execution.arrow.useLargeVarTypes": ("true", "false"),
    "spark.sql.execution.arrow.compression.codec": ("zstd", "lz4"),  # lz4 with one row a batch fails in Spark itself
    "spark.sql.execution.pythonUDF.arrow.enabled": ("true", "false"),
}
"""Those of Spark 4 that read, write or hand on rows in some way, and values other than its own."""
WAYS = ("data source", "write", "tier")


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.getAll.get(key) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _write(spark: SparkSession, way: str, target: Target, source: Target) -> None:
    keys = target.options() | {"lake.partition-by": "p"}
    if way == "data source":
        spark.sql(ROWS).write.format("laketier").options(**keys).mode("append").save()
    elif way == "write":
        laketier.spark.write(spark.sql(ROWS), keys)
    else:
        laketier.spark.tier(spark, source.options(), keys)


def _seen(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.selectExpr(*SEEN).collect())


def _arrow(target: Target) -> list[str]:
    schema, batches = scan(open_source(configure(target.options())), ScanRequest())
    return [str(row) for row in pa.Table.from_batches(batches, schema=schema).sort_by("id").to_pylist()]


def _is_native(df: DataFrame) -> bool:
    return "FileScan parquet" in df._jdf.queryExecution().executedPlan().toString()


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Target, Any, Any]:
    """A table that was written in a session as it comes, its rows in Arrow, and what Spark sees of them."""
    made = Target(tmp_path_factory.mktemp("plain"), "localfile")
    laketier.spark.write(spark.sql(ROWS), made.options() | {"lake.partition-by": "p", "lake.localfile.fold-files": "0"})
    read = laketier.spark.read(spark, made.options())
    assert _is_native(read)
    return made, _arrow(made), _seen(read)


ALL = [
    pytest.param({key: values[number] for key, values in SETTINGS.items()}, id=f"all, value {number}")
    for number in range(2)
]
EACH = [
    pytest.param({key: value}, id=f"{key}={value}", marks=pytest.mark.deep)
    for key, values in SETTINGS.items()
    for value in values
]


@pytest.mark.parametrize("values", [*ALL, *EACH])
def test_rows_are_the_same(spark: SparkSession, plain: Any, tmp_path: Path, values: Mapping[str, str]) -> None:
    source, rows, seen = plain
    found: dict[str, Any] = {}
    with settings(spark, values):
        for way in WAYS:
            target = Target(tmp_path / way, "localfile")
            _write(spark, way, target, source)
            found[way] = _arrow(target)
        out = {
            "read": laketier.spark.read(spark, source.options()),
            "data source": spark.read.format("laketier").options(**source.options()).load(),
        }
        read = {name: _seen(df) for name, df in out.items()}
    assert found == dict.fromkeys(WAYS, rows)
    assert read == dict.fromkeys(read, seen)


@pytest.mark.parametrize("sensitive", ["true", "false"])
@pytest.mark.parametrize("way", ["data source", "write"])
def test_columns_that_differ_by_case_only_are_refused(
    spark: SparkSession, target: Target, way: str, sensitive: str
) -> None:
    """Also where the session tells them apart: others who read the table may not."""
    with settings(spark, {"spark.sql.caseSensitive": sensitive}):
        both = spark.sql("SELECT 1L AS a, 2L AS A")
        writer = both.write.format("laketier").options(**target.options()).mode("append")
        write = writer.save if way == "data source" else partial(laketier.spark.write, both, target.options())
        with pytest.raises(Exception, match="columns 'a' and 'A' differ by case only"):
            write()
        laketier.spark.write(spark.sql("SELECT 1L AS a"), target.options())
        with pytest.raises(IncompatibleTable, match="'A'"):
            laketier.spark.write(spark.sql("SELECT 2L AS A"), target.options() | {"mergeSchema": "true"})
        assert [tuple(row) for row in laketier.spark.read(spark, target.options()).collect()] == [(1,)]


@pytest.mark.parametrize("true", ["true", " TRUE"])
def test_moments_of_int96_are_not_moved(spark: SparkSession, target: Target, true: str) -> None:
    """As Impala writes them. Spark's own reader takes such moments for local ones, if the session asks for it, and has
    no option by which a read could say otherwise."""
    keys = target.options() | {"lake.localfile.fold-files": "0"}
    laketier.spark.write(spark.sql("SELECT timestamp_micros(1719835200000000) AS at").coalesce(1), keys)
    read = laketier.spark.read(spark, target.options())
    assert _is_native(read)
    file = Path(read.inputFiles()[0].removeprefix("file://"))
    pq.write_table(pq.read_table(file), file, use_deprecated_int96_timestamps=True)
    asked = {"spark.sql.parquet.int96TimestampConversion": true, "spark.sql.session.timeZone": "America/New_York"}
    with settings(spark, asked):
        spark_itself = spark.read.schema("at timestamp").parquet(str(file)).selectExpr("unix_micros(at)")
        assert spark_itself.first() != (1719835200000000,)
        read = laketier.spark.read(spark, target.options())
        assert not _is_native(read)


def test_batches_without_a_bound_of_rows(spark: SparkSession, plain: Any, tmp_path: Path) -> None:
    """Spark itself refuses to read from a Python data source then."""
    source, rows, seen = plain
    with settings(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "0"}):
        for way in WAYS:
            target = Target(tmp_path / way, "localfile")
            _write(spark, way, target, source)
            assert _arrow(target) == rows, way
        assert _seen(laketier.spark.read(spark, source.options())) == seen
        with pytest.raises(PySparkException, match="maximum arrow batch size should be greater than 0"):
            spark.read.format("laketier").options(**source.options()).load().collect()
