"""Iceberg's own Spark connector beside laketier, on the same tables through the same catalog file.

Runs where SPARK_LIBS names a folder with org.apache.iceberg:iceberg-spark-runtime-4.1_2.13 and org.xerial:sqlite-jdbc,
and SPARK_PYTHON an interpreter with pyspark 4.1.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jvm_spark import JvmError, JvmSpark
from laketier.registry import Lake
from laketier.spi import FeatureNotSupported, RenameColumn, RolledBack, ScanRequest, UnsupportedType
from laketier.tables.scan import scan
from laketier_verification.lakes import append, ids, lake_at, rows_of

pytestmark = [
    pytest.mark.skipif(
        not list(Path(os.environ.get("SPARK_LIBS", "/nowhere")).glob("iceberg-spark-runtime-*.jar")),
        reason="SPARK_LIBS names no folder with iceberg-spark",
    ),
]

HOUR = 3_600_000


@pytest.fixture
def warehouse(tmp_path: Path, jvm: JvmSpark) -> Path:
    """A warehouse of ours, which the connector has as the catalog ``laketier``: the recipe of the plugin's README."""
    jvm.session(settings(tmp_path / "lake"))
    return tmp_path / "lake"


def settings(warehouse: Path) -> dict[str, str]:
    prefix = "spark.sql.catalog.laketier"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{warehouse}/catalog.db",
        f"{prefix}.warehouse": str(warehouse),
        f"{prefix}.jdbc.schema-version": "V1",
        f"{prefix}.cache-enabled": "false",
    }


def ours(lake: Lake, **request: Any) -> list[dict[str, Any]]:
    """The rows of db.t as laketier reads them."""
    _, batches = scan(lake.storage.source(lake.load_table()), ScanRequest(**request))
    return sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["id"])


def shift(warehouse: Path, milliseconds: int) -> None:
    """As if the newest commit had been made by a clock that was so far ahead."""
    newest = max((warehouse / "db/t/metadata").glob("*.metadata.json"), key=lambda path: path.name)
    document = json.loads(newest.read_text())
    for log in ("snapshot-log", "snapshots"):
        document[log][-1]["timestamp-ms"] += milliseconds
    document["last-updated-ms"] += milliseconds
    newest.write_text(json.dumps(document))


def test_the_recipe_of_the_readme_reads_and_writes(warehouse: Path, jvm: JvmSpark) -> None:
    lake = lake_at(warehouse, "iceberg")
    append(lake, rows_of(1, 2), epoch=0)
    assert [row["id"] for row in jvm.sql("SELECT id FROM laketier.db.t ORDER BY id")] == [1, 2]
    jvm.sql("INSERT INTO laketier.db.t VALUES (3, 'x')")
    append(lake, rows_of(4), epoch=1)
    assert ids(lake) == [1, 2, 3, 4] == [row["id"] for row in jvm.sql("SELECT id FROM laketier.db.t ORDER BY id")]


def test_commits_after_a_clock_that_was_ahead_stay_readable(warehouse: Path, jvm: JvmSpark) -> None:
    lake = lake_at(warehouse, "iceberg")
    append(lake, rows_of(1), epoch=0)
    shift(warehouse, HOUR)
    append(lake, rows_of(2), epoch=1)
    lake.storage.catalog().alter_table(lake.load_table().path, [RenameColumn("name", "called")])
    append(lake_at(warehouse, "iceberg"), rows_of().rename_columns(["id", "called"]), epoch=2)
    assert [row["id"] for row in jvm.sql("SELECT id FROM laketier.db.t ORDER BY id")] == [1, 2]
    with pytest.raises(JvmError, match=r"Expected sorted|Invalid update timestamp"):
        jvm.sql("INSERT INTO laketier.db.t VALUES (3, 'x')")
    maintenance = lake.storage.maintenance(lake.load_table())
    assert maintenance.findings()
    assert maintenance.repair() == []
    jvm.sql("INSERT INTO laketier.db.t VALUES (3, 'x')")
    assert ids(lake) == [1, 2, 3]


def test_a_table_that_the_connector_refuses_is_mended(warehouse: Path, jvm: JvmSpark) -> None:
    lake = lake_at(warehouse, "iceberg")
    append(lake, rows_of(1), epoch=0)
    append(lake, rows_of(2), epoch=1)
    shift(warehouse, -HOUR)
    with pytest.raises(JvmError, match="Expected sorted snapshot log entries"):
        jvm.sql("SELECT id FROM laketier.db.t")
    assert ids(lake) == [1, 2], "which laketier and pyiceberg read all the same"
    maintenance = lake.storage.maintenance(lake.load_table())
    assert maintenance.findings()
    assert maintenance.repair() == []
    assert [row["id"] for row in jvm.sql("SELECT id FROM laketier.db.t ORDER BY id")] == [1, 2]
    jvm.sql("INSERT INTO laketier.db.t VALUES (3, 'x')")
    append(lake, rows_of(4), epoch=2)
    assert ids(lake) == [1, 2, 3, 4]


def test_files_without_ids_are_read_alike_after_renames(warehouse: Path, jvm: JvmSpark, tmp_path: Path) -> None:
    lake = lake_at(warehouse, "iceberg")
    append(lake, rows_of(1), epoch=0)
    jvm.sql(f"CREATE TABLE src (id BIGINT, name STRING) USING parquet LOCATION '{tmp_path / 'src'}'")
    jvm.sql("INSERT INTO src VALUES (2, 'two')")
    jvm.sql(f"CALL laketier.system.add_files(table => 'db.t', source_table => '`parquet`.`{tmp_path / 'src'}`')")
    jvm.sql("ALTER TABLE laketier.db.t RENAME COLUMN name TO called")
    theirs = jvm.sql("SELECT * FROM laketier.db.t ORDER BY id")
    assert theirs == ours(lake) == [{"id": 1, "called": "n1"}, {"id": 2, "called": "two"}]
    jvm.sql("ALTER TABLE laketier.db.t ADD COLUMN name STRING")
    theirs = jvm.sql("SELECT * FROM laketier.db.t ORDER BY id")
    # The name mapping gives the name to the new column, and it is all that files without ids are known by.
    assert theirs == ours(lake) == [{"id": 1, "called": "n1", "name": None}, {"id": 2, "called": None, "name": "two"}]


def test_partitions_that_files_lack_are_read_alike(warehouse: Path, jvm: JvmSpark, tmp_path: Path) -> None:
    lake = lake_at(warehouse, "iceberg")
    append(lake, rows_of(1), epoch=0)
    jvm.sql("CREATE TABLE laketier.db.p (id BIGINT, day DATE, n INT) USING iceberg PARTITIONED BY (day, n)")
    jvm.sql(
        "CREATE TABLE hive_like (id BIGINT, day DATE, n INT) USING parquet PARTITIONED BY (day, n) "
        f"LOCATION '{tmp_path / 'hive'}'"
    )
    jvm.sql("INSERT INTO hive_like VALUES (1, DATE'2020-01-02', 5), (2, NULL, NULL), (3, DATE'1969-12-31', -1)")
    jvm.sql(f"CALL laketier.system.add_files(table => 'db.p', source_table => '`parquet`.`{tmp_path / 'hive'}`')")
    jvm.sql("ALTER TABLE laketier.db.p RENAME COLUMN n TO number")
    table = lake_at(warehouse, "iceberg", table="db.p")
    theirs = jvm.sql("SELECT id, CAST(day AS STRING) day, number FROM laketier.db.p ORDER BY id")
    assert theirs == [{**row, "day": row["day"] and str(row["day"])} for row in ours(table)]
    assert [row["number"] for row in theirs] == [5, None, -1]


def test_initial_defaults_of_version_3_are_read_alike(warehouse: Path, jvm: JvmSpark) -> None:
    append(lake_at(warehouse, "iceberg"), rows_of(1), epoch=0)
    jvm.sql("CREATE TABLE laketier.db.d (id BIGINT) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    jvm.sql("INSERT INTO laketier.db.d VALUES (1)")
    jvm.python(
        """
        jvm = spark._jvm
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "laketier.db.d")
        types, lit = jvm.org.apache.iceberg.types.Types, jvm.org.apache.iceberg.expressions.Literal.of
        update = table.updateSchema()
        update.addColumn("n", types.IntegerType.get(), lit(7))
        update.addColumn("s", types.StringType.get(), lit("x"))
        update.addColumn("d", types.DateType.get(), lit("2020-01-02").to(types.DateType.get()))
        update.addColumn("m", types.DecimalType.of(9, 2), lit("1.50").to(types.DecimalType.of(9, 2)))
        zoneless = types.TimestampType.withoutZone()
        update.addColumn("t", zoneless, lit("2020-01-02T03:04:05").to(zoneless))
        update.commit()
        """
    )
    jvm.sql("INSERT INTO laketier.db.d VALUES (2, 8, 'y', DATE'2021-01-01', 2.5, TIMESTAMP_NTZ'2021-01-01 00:00:00')")
    theirs = jvm.sql("SELECT * FROM laketier.db.d ORDER BY id")
    table = lake_at(warehouse, "iceberg", table="db.d")
    assert theirs == json.loads(json.dumps(ours(table), default=str))
    assert theirs[0]["n"] == 7


def test_variants_are_refused_by_name(warehouse: Path, jvm: JvmSpark) -> None:
    append(lake_at(warehouse, "iceberg"), rows_of(1), epoch=0)
    jvm.sql("CREATE TABLE laketier.db.v (id BIGINT, doc VARIANT) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    jvm.sql("INSERT INTO laketier.db.v SELECT 1, parse_json('{\"a\": 1}')")
    with pytest.raises(UnsupportedType, match=r"db\.v.*'doc' is of Iceberg's type variant"):
        lake_at(warehouse, "iceberg", table="db.v").load_table()


def test_a_rollback_is_noticed_also_after_the_connector_expired_what_told_of_it(warehouse: Path, jvm: JvmSpark) -> None:
    lake = lake_at(warehouse, "iceberg")
    first = append(lake, rows_of(1), epoch=0).snapshot_id
    append(lake, rows_of(2), epoch=1)
    jvm.sql(f"CALL laketier.system.rollback_to_snapshot('db.t', {first})")
    jvm.sql("INSERT INTO laketier.db.t VALUES (9, 'x')")
    expiry = "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"
    jvm.sql(f"CALL laketier.system.expire_snapshots(table => 'db.t', {expiry})")
    with pytest.raises(RolledBack, match="epoch 1"):
        append(lake, rows_of(3), epoch=2)
    assert ids(lake) == [1, 9]


def test_what_a_hadoop_catalog_committed_since_is_no_orphan(warehouse: Path, jvm: JvmSpark, tmp_path: Path) -> None:
    """A table that was registered here, and went on there."""
    append(lake_at(warehouse, "iceberg"), rows_of(1), epoch=0)
    hadoop = "spark.sql.catalog.hadoop"
    files = {hadoop: "org.apache.iceberg.spark.SparkCatalog", f"{hadoop}.type": "hadoop"}
    jvm.session(
        settings(warehouse)
        | files
        | {f"{hadoop}.warehouse": str(tmp_path / "hadoop"), f"{hadoop}.cache-enabled": "false"}
    )
    jvm.sql("CREATE TABLE hadoop.db.h (id BIGINT, name STRING) USING iceberg")
    jvm.sql("INSERT INTO hadoop.db.h VALUES (1, 'x')")
    newest = max((tmp_path / "hadoop/db/h/metadata").glob("v*.metadata.json"))
    jvm.sql(f"CALL laketier.system.register_table(table => 'db.h', metadata_file => '{newest}')")
    lake = lake_at(warehouse, "iceberg", table="db.h")
    append(lake, rows_of(2), epoch=0)
    maintenance = lake.storage.maintenance(lake.load_table())
    assert maintenance.orphans(2**60) == []
    jvm.sql("INSERT INTO hadoop.db.h VALUES (3, 'x')")
    with pytest.raises(FeatureNotSupported, match=r"metadata/v3\.metadata\.json goes on from metadata"):
        maintenance.orphans(2**60)
    assert ids(lake) == [1, 2]
    assert [row["id"] for row in jvm.sql("SELECT id FROM hadoop.db.h ORDER BY id")] == [1, 3]


DELETED = [number for number in range(10) if number != 3]


@pytest.mark.parametrize("format", ["avro", "orc"])
def test_deletes_in_other_files_than_parquet_are_refused_until_the_connector_wrote_them_anew(
    warehouse: Path, jvm: JvmSpark, format: str
) -> None:
    """By the way out that the error names, as in the next two."""
    table = deleted_in_place(warehouse, jvm, **{"write.delete.format.default": format})
    with pytest.raises(FeatureNotSupported, match="deletes in other files than Parquet") as refusal:
        ours(table)
    assert "set write.delete.format.default to parquet, then CALL system.rewrite_position_delete_files" in str(
        refusal.value
    )
    jvm.sql("ALTER TABLE laketier.db.d SET TBLPROPERTIES ('write.delete.format.default' = 'parquet')")
    rewrite(jvm, "rewrite_position_delete_files", refusal.value)
    assert ids(table) == DELETED


def test_deletion_vectors_are_refused_until_the_connector_removed_them(warehouse: Path, jvm: JvmSpark) -> None:
    table = deleted_in_place(warehouse, jvm, **{"format-version": "3"})
    with pytest.raises(FeatureNotSupported, match="deletion vectors") as refusal:
        ours(table)
    rewrite(jvm, "rewrite_data_files", refusal.value)
    assert ids(table) == DELETED


def test_equality_deletes_are_refused_until_the_connector_removed_them(warehouse: Path, jvm: JvmSpark) -> None:
    table = deleted_in_place(warehouse, jvm, where="id > 9")
    path = warehouse / "db/d/data/deletes.parquet"
    number = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table([[3]], schema=pa.schema([number])), path)
    jvm.python(
        """
        jvm = spark._jvm
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "laketier.db.d")
        ids = spark.sparkContext._gateway.new_array(jvm.int, 1)
        ids[0] = 1
        file = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(ids)
        file = file.withPath(path).withFormat("parquet").withFileSizeInBytes(size).withRecordCount(1).build()
        table.newRowDelta().addDeletes(file).commit()
        """,
        path=str(path),
        size=path.stat().st_size,
    )
    assert [row["id"] for row in jvm.sql("SELECT id FROM laketier.db.d ORDER BY id")] == DELETED
    with pytest.raises(FeatureNotSupported, match="equality deletes") as refusal:
        ours(table)
    rewrite(jvm, "rewrite_data_files", refusal.value)
    assert ids(table) == DELETED


def deleted_in_place(warehouse: Path, jvm: JvmSpark, where: str = "id = 3", **properties: str) -> Lake:
    """The table db.d of ten rows, from which the connector deleted without writing its files anew."""
    append(lake_at(warehouse, "iceberg"), rows_of(1), epoch=0)
    told = ", ".join(f"'{k}' = '{v}'" for k, v in ({"write.delete.mode": "merge-on-read"} | properties).items())
    jvm.sql(f"CREATE TABLE laketier.db.d (id BIGINT) USING iceberg TBLPROPERTIES ({told})")
    jvm.sql("INSERT INTO laketier.db.d SELECT id FROM range(10)")
    jvm.sql(f"DELETE FROM laketier.db.d WHERE {where}")
    return lake_at(warehouse, "iceberg", table="db.d")


def rewrite(jvm: JvmSpark, procedure: str, refusal: FeatureNotSupported) -> None:
    """The call that an error advises."""
    call = re.search(rf"CALL system\.({procedure}\(.*?\)\))", str(refusal))
    assert call is not None
    jvm.sql(f"CALL laketier.system.{call[1].replace('…', repr('db.d'))}")
