"""What the connectors make of files that laketier wrote: values in another zone, and pruning by our statistics."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f

import laketier.spark
from jvm_lake import JvmLake
from laketier.registry import open_lake
from laketier.spi import TableDescriptor, WriterInitContext, new_attempt_id
from laketier.tiering import TieringRound, write_task

UTC = dt.UTC
D = decimal.Decimal
# Extremes, what rounding or cutting of a bound would lose, and nulls. One file per group of values.
VALUES: dict[str, tuple[pa.DataType, list[list[Any]]]] = {
    "tiny": (pa.int32(), [[-(2**31), 0], [1, 2**31 - 1], [None, 7]]),
    "big": (pa.int64(), [[-(2**63), -1], [2**53 + 1, 2**63 - 1], [None, 0]]),
    "real": (pa.float32(), [[-0.0, 0.0], [1.5, math.inf], [-math.inf, None], [math.nan, 2.5]]),
    "double": (pa.float64(), [[-0.0, 5e-324], [0.1, 1.7976931348623157e308], [math.nan, 3.0], [None, -1e300]]),
    "money": (pa.decimal128(20, 4), [[D("-9999999999999999.9999"), D("0.0001")], [D("9999999999999999.9999"), None]]),
    "flag": (pa.bool_(), [[True, True], [False, False], [None, True]]),
    "day": (pa.date32(), [[dt.date(1, 1, 1), dt.date(1969, 12, 31)], [dt.date(1970, 1, 1), dt.date(9999, 12, 31)]]),
    "at": (
        pa.timestamp("us", "UTC"),
        [
            [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), dt.datetime(1970, 1, 1, tzinfo=UTC)],
            # An hour that New York has twice, and one that it does not have.
            [dt.datetime(2026, 11, 1, 5, 30, 0, 1, UTC), dt.datetime(2026, 11, 1, 6, 30, 0, 1, UTC)],
            [dt.datetime(2026, 3, 8, 7, 0, 0, 999, UTC), None],
        ],
    ),
    "local": (
        pa.timestamp("us"),
        [
            [dt.datetime(1969, 7, 20, 20, 17, 40, 999_999), dt.datetime(2026, 3, 8, 2, 30, 0, 1)],
            [None, dt.datetime.max],
        ],
    ),
    "text": (
        pa.string(),
        [["", "a" * 100 + "b"], ["a" * 100 + "\U0010ffff", "\U0010ffff" * 40], ["ü", "ﬀ\u0000x"], [None, "it's \\ \""]],
    ),
    "raw": (pa.binary(), [[b"", b"\xff" * 40], [b"\x00", None]]),
}


def land(lake: JvmLake, schema: pa.Schema, batches: list[pa.RecordBatch], **descriptor: Any) -> None:
    """One file per batch, in one round."""
    opened = open_lake(lake.config())
    opened.storage.catalog().create_table(opened.config.table, TableDescriptor(schema, **descriptor))
    factory = opened.tiering_factory(opened.load_table())
    messages = [
        write_task(factory, [rows], WriterInitContext(attempt=new_attempt_id(), split_index=index))
        for index, rows in enumerate(batches)
    ]
    TieringRound(factory, token=None).commit_messages(messages)


def key_of(value: Any) -> Any:
    return ("nan",) if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize("name", VALUES)
def test_no_predicate_loses_a_row(jvm_lake: JvmLake, format: str, name: str) -> None:
    """Spark's own Parquet reader without any table says which rows satisfy it; a wrong bound would prune some away."""
    kind, groups = VALUES[name]
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("v", kind)])
    numbers = iter(range(1000))
    batches = [
        pa.record_batch([pa.array([next(numbers) for _ in group], pa.int64()), pa.array(group, kind)], schema=schema)
        for group in groups
    ]
    land(jvm_lake, schema, batches)
    spark = jvm_lake.spark
    plain = spark.createDataFrame(
        [tuple(row.values()) for rows in batches for row in rows.to_pylist()], jvm_lake.rows.schema
    ).persist()
    if not pa.types.is_timestamp(kind):
        # What the driver sends to Python and back is in local times, so times are compared within Spark below.
        theirs = sorted((row.n, repr(key_of(row.v))) for row in jvm_lake.rows.collect())
        assert theirs == sorted((row.n, repr(key_of(row.v))) for row in plain.collect())
    asked = 0
    literals = jvm_lake.rows.select("v").distinct().where("v IS NOT NULL").collect()
    exact = jvm_lake.rows.select("n", "v").persist()
    exact.count()
    for row in jvm_lake.rows.where("v IS NOT NULL").select("n").collect():
        literal = exact.where(f.col("n") == row.n).select(f.col("v").alias("x"))
        value = None if pa.types.is_temporal(kind) else f.lit(literal.collect()[0].x)
        for say in ("=", "<", "<=", ">", ">=", "<>"):
            predicate = _predicate(say, value) if value is not None else _time_predicate(say, groups, row.n, kind)
            pruned = {found.n for found in jvm_lake.rows.where(predicate).collect()}
            whole = {found.n for found in exact.where(predicate).collect()}
            assert pruned == whole, f"{format}: v {say} {literal}"
            asked += 1
    for predicate in (f.col("v").isNull(), f.col("v").isNotNull()):
        assert jvm_lake.rows.where(predicate).count() == exact.where(predicate).count()
    exact.unpersist()
    plain.unpersist()
    assert asked >= 6 * len(literals)


def _predicate(say: str, value: Any) -> Any:
    column = f.col("v")
    return {
        "=": column == value,
        "<": column < value,
        "<=": column <= value,
        ">": column > value,
        ">=": column >= value,
        "<>": column != value,
    }[say]


def _time_predicate(say: str, groups: list[list[Any]], n: int, kind: pa.DataType) -> Any:
    value = [value for group in groups for value in group][n]
    if pa.types.is_date(kind):
        return f.expr(f"v {say} DATE '{value.isoformat()}'")
    micros = pa.scalar(value, kind).value
    if kind.tz is not None:
        return f.expr(f"v {say} timestamp_micros({micros})")
    return f.expr(f"v {say} TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'")


def test_times_are_the_same_instants(jvm_lake: JvmLake) -> None:
    """In a session and a JVM in New York, both ways."""
    kind, groups = VALUES["at"]
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("v", kind)])
    values = [value for group in groups for value in group]
    rows = pa.record_batch([pa.array(range(len(values)), pa.int64()), pa.array(values, kind)], schema=schema)
    land(jvm_lake, schema, [rows])
    micros = dict(enumerate(pa.array(values, kind).cast(pa.int64()).to_pylist()))
    theirs = {row.n: row.m for row in jvm_lake.rows.selectExpr("n", "unix_micros(v) AS m").collect()}
    assert theirs == micros
    jvm_lake.theirs("INSERT INTO {t} SELECT n + 100, v FROM {t}")
    ours = laketier.spark.read(jvm_lake.spark, jvm_lake.config()).selectExpr("n", "unix_micros(v) AS m").collect()
    assert {row.n: row.m for row in ours} == {**micros, **{n + 100: m for n, m in micros.items()}}
    assert {row["n"]: row["v"] for row in jvm_lake.by_library().to_pylist() if row["n"] >= 100} == {
        n + 100: value for n, value in enumerate(values)
    }


@pytest.mark.parametrize("name", ["day", "at", "text", "flag", "big", "money"])
def test_partitions_by_either_are_one(jvm_lake: JvmLake, format: str, name: str) -> None:
    """The connector's table, rows of both, and one partition per value."""
    kind, groups = VALUES[name]
    # No folder has such a name: one text is too long, and both refuse it; delta-spark can't write the one with a NUL.
    impossible = (None, "", "\U0010ffff" * 40, "ﬀ\u0000x")
    values = [value for group in groups for value in group if value not in impossible]
    types = {
        "day": "DATE",
        "at": "TIMESTAMP",
        "text": "STRING",
        "flag": "BOOLEAN",
        "big": "BIGINT",
        "money": "DECIMAL(20,4)",
    }
    properties = {"format-version": "2"} if format == "iceberg" else {}
    jvm_lake.create(f"n BIGINT, v {types.get(name, 'DECIMAL(20,4)')}", "v", **properties)
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("v", kind)])
    rows = pa.record_batch([pa.array(range(len(values)), pa.int64()), pa.array(values, kind)], schema=schema)
    opened = open_lake(jvm_lake.config())
    factory = opened.tiering_factory(opened.load_table())
    message = write_task(factory, [rows], WriterInitContext(attempt=new_attempt_id()))
    TieringRound(factory, token=None).commit_messages([message])
    jvm_lake.theirs("INSERT INTO {t} SELECT n + 1000, v FROM {t}")
    distinct = len(set(values))
    pairs = jvm_lake.rows.groupBy("v").count().collect()
    assert len(pairs) == distinct
    assert sum(row["count"] for row in pairs) == 2 * len(values)
    ours = laketier.spark.read(jvm_lake.spark, jvm_lake.config())
    assert ours.exceptAll(jvm_lake.rows).count() == 0
    assert jvm_lake.rows.exceptAll(ours).count() == 0
    if format == "delta":
        jvm_lake.theirs("OPTIMIZE {t}")
        per_value = jvm_lake.rows.select("v", f.input_file_name().alias("file")).distinct().groupBy("v").count()
        assert {row["count"] for row in per_value.collect()} == {1}, "two spellings of one value"
        folders = {str(path.parent) for path in Path(jvm_lake.path).rglob("*.parquet")}  # type: ignore[attr-defined]
        # delta-spark names folders by its session's zone and escapes fewer letters; partitions are the log's values.
        assert len(folders) == distinct or name in ("at", "text"), folders
