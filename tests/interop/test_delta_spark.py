"""Delta's own Spark connector beside laketier, on the same tables, in a session of New York.

Runs where SPARK_LIBS names a folder with io.delta:delta-spark_4.1_2.13, delta-storage and what they need, and
SPARK_PYTHON an interpreter with pyspark 4.1.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jvm_spark import JvmSpark
from laketier.registry import Lake
from laketier.spi import IncompatibleData, IncompatibleTable, Leaf, Op, ScanRequest, WriteMode
from laketier.tables.scan import scan
from laketier_verification.lakes import append, lake_at, read_all

LIBS = Path(os.environ.get("SPARK_LIBS", "/nowhere"))
pytestmark = [
    pytest.mark.skipif(not list(LIBS.glob("delta-spark_*.jar")), reason="SPARK_LIBS names no folder with delta-spark"),
    pytest.mark.timeout(900),  # the first test starts the JVM
]

ZONED = pa.timestamp("us", "UTC")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_THERE = "2026-01-01 07:00:00"
PARTITIONED = pa.schema([("id", pa.int64()), ("at", ZONED), ("local", pa.timestamp("us"))])


@pytest.fixture
def spark(jvm: JvmSpark) -> JvmSpark:
    jvm.session(
        {
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.session.timeZone": "America/New_York",
            "spark.databricks.delta.snapshotPartitions": "1",
        }
    )
    return jvm


def at(start: int, *moments: datetime) -> pa.RecordBatch:
    local = [moment.replace(tzinfo=None) for moment in moments]
    columns = {"id": list(range(start, start + len(moments))), "at": list(moments), "local": local}
    return pa.RecordBatch.from_pydict(columns, schema=PARTITIONED)


def values_in_log(uri: str) -> list[dict[str, Any]]:
    lines = [line for path in sorted(Path(uri, "_delta_log").glob("*.json")) for line in path.read_text().splitlines()]
    return [action["add"]["partitionValues"] for action in map(json.loads, lines) if "add" in action]


def found(lake: Lake, *filters: Leaf) -> list[int]:
    source = lake.storage.source(lake.load_table())
    _, batches = scan(source, ScanRequest(filters=filters))
    return sorted(row for batch in batches for row in batch.column("id").to_pylist())


def test_instants_as_partitions_are_the_same_for_both_and_spelled_once(tmp_path: Path, spark: JvmSpark) -> None:
    lake = lake_at(tmp_path, "delta", **{"lake.partition-by": "at, local"})
    half = NOON.replace(microsecond=500_000)
    append(lake, at(0, NOON, half), epoch=0)
    table = f"delta.`{tmp_path}/db/t`"
    spark.sql(f"INSERT INTO {table} SELECT id + 10, at, local FROM {table}")
    append(lake, at(20, NOON), epoch=1)
    rows = spark.sql(f"SELECT id, cast(at AS string) AS at, unix_micros(at) AS micros FROM {table} ORDER BY id")
    assert [(row["id"], row["at"]) for row in rows] == [
        (0, NOON_THERE), (1, f"{NOON_THERE}.5"), (10, NOON_THERE), (11, f"{NOON_THERE}.5"), (20, NOON_THERE)
    ]  # fmt: skip
    assert rows[0]["micros"] == round(NOON.timestamp() * 1_000_000)
    spelled = {(values["at"], values["local"]) for values in values_in_log(f"{tmp_path}/db/t")}
    assert spelled == {
        ("2026-01-01T12:00:00.000000Z", "2026-01-01 12:00:00"),
        ("2026-01-01T12:00:00.500000Z", "2026-01-01 12:00:00.5"),
    }
    where = f"at = timestamp'{NOON_THERE}'"
    assert [row["id"] for row in spark.sql(f"SELECT id FROM {table} WHERE {where} ORDER BY id")] == [0, 10, 20]
    assert found(lake, Leaf("at", Op.EQ, NOON)) == [0, 10, 20]
    spark.sql(f"DELETE FROM {table} WHERE {where}")
    assert found(lake) == [1, 11]
    append(lake, at(30, NOON), epoch=2, mode=WriteMode.OVERWRITE)
    assert [row["id"] for row in spark.sql(f"SELECT id FROM {table}")] == [30]


def test_a_table_that_spark_made_takes_our_rows_in_its_spelling(tmp_path: Path, spark: JvmSpark) -> None:
    table = f"delta.`{tmp_path}/db/t`"
    spark.sql(
        f"CREATE TABLE {table} (id bigint, at timestamp, local timestamp_ntz) USING delta PARTITIONED BY (at, local)"
    )
    spark.sql(f"INSERT INTO {table} VALUES (0, timestamp'{NOON_THERE}', timestamp_ntz'2026-01-01 12:00:00.5')")
    lake = lake_at(tmp_path, "delta")
    append(
        lake, at(2, NOON).set_column(2, "local", pa.array([NOON.replace(tzinfo=None, microsecond=500_000)])), epoch=0
    )
    assert len({json.dumps(values, sort_keys=True) for values in values_in_log(f"{tmp_path}/db/t")}) == 1
    assert found(lake, Leaf("at", Op.EQ, NOON)) == [0, 2]
    grouped = spark.sql(f"SELECT at, count(*) AS n FROM {table} WHERE at IS NOT NULL GROUP BY at")
    assert [row["n"] for row in grouped] == [2]


def test_char_and_varchar_are_checked_as_spark_checks_them(tmp_path: Path, spark: JvmSpark) -> None:
    table = f"delta.`{tmp_path}/db/t`"
    spark.sql(f"CREATE TABLE {table} (id bigint, c char(3), v varchar(3)) USING delta")
    lake = lake_at(tmp_path, "delta")

    def batch(c: str, v: str) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"id": [1], "c": [c], "v": [v]})

    append(lake, batch("a", "\U0001f600\u00e9a"))
    assert spark.sql(f"SELECT c, v FROM {table}") == [{"c": "a  ", "v": "\U0001f600\u00e9a"}]
    for bad in (batch("abcd", "a"), batch("a", "abc "), batch("abc ", "a")):
        with pytest.raises(IncompatibleData, match="4 characters"):
            append(lake, bad)
        row = bad.to_pylist()[0]
        with pytest.raises(Exception, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
            spark.sql(f"INSERT INTO {table} VALUES (1, '{row['c']}', '{row['v']}')")
    assert read_all(lake).num_rows == 1


@pytest.mark.parametrize(
    ("columns", "properties", "named"),
    [
        ("id bigint, v variant", "", "variantType"),
        ("id bigint, a array<char(3)>", "", "inside a column"),
        ("id bigint, g bigint GENERATED ALWAYS AS (id + 1)", "", "generated column"),
        ("id bigint, g bigint GENERATED ALWAYS AS IDENTITY", "", "identity"),
        ("id bigint, s string", "'delta.columnMapping.mode' = 'name'", "column mapping"),
        ("id bigint", "'delta.enableTypeWidening' = 'true'", "typeWidening"),
        ("id bigint", "'delta.enableRowTracking' = 'true'", "DROP FEATURE rowTracking"),
        ("id bigint", "'delta.enableInCommitTimestamps' = 'true'", "DROP FEATURE inCommitTimestamp"),
        ("id bigint", "'delta.checkpointPolicy' = 'v2'", "DROP FEATURE v2Checkpoint TRUNCATE HISTORY"),
    ],
)
def test_what_laketier_does_not_honour_is_refused_by_name(
    tmp_path: Path, spark: JvmSpark, columns: str, properties: str, named: str
) -> None:
    extra = f"TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/db/t` ({columns}) USING delta {extra}")
    with pytest.raises(IncompatibleTable, match=named):
        append(lake_at(tmp_path, "delta"), pa.RecordBatch.from_pydict({"id": [1]}))
