"""Partition values are spelled as delta-spark 4.4 spells them, and every spelling of an instant is read as that one."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import unquote

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from laketier.kit.partition import OddPartitionValues
from laketier.spi import (
    IncompatibleData,
    IncompatibleTable,
    Leaf,
    Op,
    ScanRequest,
    StorageError,
    TableDescriptor,
    TableError,
    Token,
    UnsupportedType,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier.spi.table import PartitionField
from laketier.tiering import TieringRound
from laketier_delta.partitions import log_text, text_of_log

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ZONED = pa.timestamp("us", "UTC")
LOCAL = pa.timestamp("us")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # What delta-spark 4.4.0 on Spark 4.1.4 wrote, in a session of New York.
        (datetime(2026, 1, 1, 5, 0, 0, 123456, tzinfo=UTC), "2026-01-01T05:00:00.123456Z"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00.000000Z"),
        (datetime(2026, 1, 1, 0, 0, 0, 500000, tzinfo=UTC), "2026-01-01T00:00:00.500000Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
        (datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "9999-12-31T23:59:59.999999Z"),
        (datetime(2026, 1, 1), "2026-01-01 00:00:00"),
        (datetime(2026, 1, 1, 0, 0, 0, 500000), "2026-01-01 00:00:00.5"),
        (datetime(1, 1, 1, 0, 0, 0, 500000), "0001-01-01 00:00:00.5"),
        (date(1, 1, 1), "0001-01-01"),
        (True, "true"),
        (None, None),
    ],
)
def test_values_are_spelled_as_delta_spark_spells_them(value, text):
    assert log_text(value) == text


@pytest.mark.parametrize(
    "raw", ["2026-01-01T00:00:00.500000Z", "2026-01-01 00:00:00.5", "2026-01-01 00:00:00.500000",
            "2026-01-01T01:00:00.5+01:00"]
)  # fmt: skip
def test_every_spelling_of_an_instant_is_that_instant(raw):
    assert text_of_log(raw, ZONED) == "2026-01-01 00:00:00.500000"


def test_what_is_no_time_is_refused_and_not_guessed():
    with pytest.raises(IncompatibleTable, match="12026"):
        text_of_log("+12026-01-01T00:00:00.000000Z", ZONED)
    assert text_of_log("", LOCAL) is None


def adds(lake) -> list[dict]:
    entries = sorted(Path(lake.uri, "_delta_log").glob("*.json"))
    actions = [json.loads(line) for entry in entries for line in entry.read_text().splitlines()]
    return [action["add"] for action in actions if "add" in action]


def at(*moments: datetime | None) -> pa.Table:
    return pa.table({"id": range(len(moments)), "at": pa.array(moments, ZONED)})


def test_a_new_table_says_that_its_instants_are_in_utc(lake):
    """In the log and in folders, for readers of either."""
    lake.create(SCHEMA, "at")
    lake.append(at(NOON, None))
    [zoned, null] = sorted(adds(lake), key=lambda add: add["partitionValues"]["at"] is None)
    assert zoned["partitionValues"] == {"at": "2026-01-01T12:00:00.000000Z"}
    assert unquote(unquote(zoned["path"])).startswith("at=2026-01-01T12:00:00.000000Z/")
    assert null["partitionValues"] == {"at": None}
    expected = [(0, NOON), (1, None)]
    table = DeltaTable(lake.uri)
    assert sorted(pl.read_delta(lake.uri).select("id", "at").rows()) == expected
    assert duckdb.from_arrow(table.to_pyarrow_table()).order("id").project('id, epoch_us("at")').fetchall() == [
        (0, round(NOON.timestamp() * 1_000_000)),
        (1, None),
    ]
    with duckdb.connect() as session:
        session.sql("SET TimeZone = 'America/New_York'")
        folders = session.read_parquet(f"{lake.uri}/at=2026*/*.parquet", hive_partitioning=True)
        assert folders.project('epoch("at"::timestamptz)').fetchall() == [(NOON.timestamp(),)]


def as_before(lake) -> None:
    """The log as laketier wrote it once: instants in UTC, without saying so."""
    for entry in Path(lake.uri, "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for add in (action["add"] for action in actions if "add" in action):
            text = add["partitionValues"]["at"]
            add["partitionValues"]["at"] = text.replace("T", " ").removesuffix(".000000Z")
        entry.write_text("\n".join(map(json.dumps, actions)))


KEYED = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("at", ZONED, nullable=False)])


def test_a_table_of_an_older_laketier_is_read_pruned_and_replaced_as_before(lake, support):
    """And a merge finds the file of a key, whichever way its partition is spelled."""
    lake.storage.catalog().create_table(
        support.PATH, TableDescriptor(KEYED, (PartitionField("at"),), primary_key=("id", "at"))
    )
    lake.append(at(NOON), mode=WriteMode.UPSERT)
    as_before(lake)
    lake.append(at(NOON.replace(hour=13), NOON).slice(0, 1), mode=WriteMode.UPSERT)
    assert [add["partitionValues"]["at"] for add in adds(lake)] == [
        "2026-01-01 12:00:00",
        "2026-01-01T13:00:00.000000Z",
    ]
    assert lake.read(Leaf("at", Op.EQ, NOON)).num_rows == 1
    source = lake.storage.source(lake.table)
    splits = source.plan(ScanRequest()).splits
    assert sorted(dict(split.partition)["at"] for split in splits) == ["2026-01-01 12:00:00", "2026-01-01 13:00:00"]
    assert sorted(dict(s.partition)["at"] for s in lake.storage.changes(lake.table).plan(1, 3).splits) == [
        "2026-01-01 12:00:00",
        "2026-01-01 13:00:00",
    ]
    [old] = [split for split in splits if dict(split.partition)["at"] == "2026-01-01 12:00:00"]
    factory = lake.factory()
    tiering = TieringRound(factory, token=Token("p", "run", 0), mode=WriteMode.UPSERT)
    tiering.begin()
    tiering.commit([replace(lake.stage(at(NOON), factory), replaced=tuple(old.files))])
    table = DeltaTable(lake.uri)
    assert sorted(table.to_pyarrow_table()["at"].to_pylist()) == [NOON, NOON.replace(hour=13)]
    table.create_checkpoint()
    assert DeltaTable(lake.uri).to_pyarrow_table().num_rows == 2, "the tombstone fits its file"


def test_beside_delta_rs_which_spells_instants_without_a_zone(lake):
    lake.create(SCHEMA, "at")
    write_deltalake(lake.uri, at(NOON), mode="append")
    lake.append(at(NOON))
    assert lake.read(Leaf("at", Op.EQ, NOON))["id"].to_pylist() == [0, 0]
    assert DeltaTable(lake.uri).to_pyarrow_table(filters=[("at", "=", NOON)]).num_rows == 2


@pytest.mark.parametrize(
    "array", [pa.array([3 * 10**17], ZONED), pa.array([-(10**17)], LOCAL), pa.array([10**7], pa.date32())], ids=str
)
def test_moments_that_no_partition_can_name_are_refused_by_name(lake, array):
    lake.create(pa.schema([("id", pa.int64()), ("at", array.type)]), "at")
    with pytest.raises(IncompatibleData, match="outside the years"):
        lake.append(pa.table({"id": pa.array([1]), "at": array}))


TEXTS = pa.schema([("id", pa.int64()), ("p", pa.string())])
LONG = "ü" * 300


def texts(*values: str | None) -> pa.Table:
    return pa.table({"id": range(len(values)), "p": pa.array(values, pa.string())})


def test_odd_values_end_a_round_until_the_user_says_what_becomes_of_them(lake_with):
    """An empty text then is null, as in delta-spark 4.4.0; a long one is in the log, and only its folder is named by a
    digest."""
    lake = lake_with()
    lake.create(TEXTS, "p")
    for value in ("", LONG):
        with pytest.raises(IncompatibleData, match=r"lake\.delta\.odd-partition-values = accept"):
            lake.append(texts("x", value))
    lake = lake_with(odd_partition_values=OddPartitionValues.ACCEPT)
    lake.append(texts("x", "", LONG, None, LONG + "y"))
    expected = ["x", None, LONG, None, LONG + "y"]
    assert lake.read().sort_by("id")["p"].to_pylist() == expected
    assert DeltaTable(lake.uri).to_pyarrow_table().sort_by("id")["p"].to_pylist() == expected
    assert lake.read(Leaf("p", Op.EQ, LONG))["id"].to_pylist() == [2]
    assert all(len(part.encode()) < 256 for add in adds(lake) for part in unquote(add["path"]).split("/"))
    with pytest.raises(IncompatibleData, match="stands for null"):
        lake.append(texts("__HIVE_DEFAULT_PARTITION__"))


def test_a_long_name_of_a_column_leaves_values_less_room(lake_with):
    """The name of a folder has both, and 255 bytes."""
    column = "k" * 200
    rows = pa.table({"id": range(3), column: pa.array(["x", "y" * 100, None])})
    lake = lake_with()
    lake.create(rows.schema, column)
    lake.append(rows.slice(0, 1))
    with pytest.raises(IncompatibleData, match=r"it is too long.*lake\.delta\.odd-partition-values = accept"):
        lake.append(rows)
    lake = lake_with(odd_partition_values=OddPartitionValues.ACCEPT)
    lake.append(rows.slice(1))
    assert lake.read().sort_by("id")[column].to_pylist() == rows[column].to_pylist()
    with pytest.raises(UnsupportedType, match="of 217 letters, can't be a partition column"):
        lake_with().create(pa.schema([("id", pa.int64()), ("k" * 217, pa.string())]), "k" * 217)


def test_a_column_of_another_tools_whose_name_leaves_no_room_for_a_digest(lake_with):
    """Its short values are taken, and its long ones are refused as such."""
    column = "k" * 220
    lake = lake_with(odd_partition_values=OddPartitionValues.ACCEPT)
    rows = pa.table({"id": range(3), column: pa.array(["x", "x", "y" * 40])})
    write_deltalake(lake.uri, rows.slice(0, 1), partition_by=[column])
    lake.append(rows.slice(1, 1))
    assert lake.read()[column].to_pylist() == ["x", "x"]
    with pytest.raises(IncompatibleData, match=r"it is too long. Partition by a shorter value, or by a hash of it\.$"):
        lake.append(rows.slice(2))


def test_an_empty_text_is_refused_where_null_is_none_either(lake_with):
    lake = lake_with(odd_partition_values=OddPartitionValues.ACCEPT)
    lake.create(pa.schema([("id", pa.int64()), pa.field("p", pa.string(), nullable=False)]), "p")
    with pytest.raises(IncompatibleData, match="empty strings, and is not null"):
        lake.append(texts(""))


def test_orphans_in_folders_named_by_a_digest_are_found(lake_with):
    lake = lake_with(odd_partition_values=OddPartitionValues.ACCEPT)
    lake.create(TEXTS, "p")
    lake.append(texts(LONG))
    lake.stage(texts(LONG))
    far = round(datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000)
    maintenance = lake.storage.maintenance(lake.table)
    [orphan] = maintenance.orphans(far)
    assert list(maintenance.remove_orphans([orphan])) == [orphan]
    assert lake.read()["p"].to_pylist() == [LONG]


def test_the_doctor_is_told_of_instants_that_do_not_say_their_zone(lake):
    lake.create(SCHEMA, "at")
    lake.append(at(NOON, None))
    maintenance = lake.storage.maintenance(lake.table)
    assert list(maintenance.findings()) == []
    write_deltalake(lake.uri, at(NOON, NOON.replace(hour=13)), mode="append")
    [finding] = maintenance.findings()
    assert finding.what == "2 files have partition values of at that name no time zone"
    assert "timeZone=UTC" in finding.fix
    DeltaTable(lake.uri).create_checkpoint()
    lake.append(at(NOON))
    assert [each.what for each in maintenance.findings()] == [finding.what], "half of it is in a checkpoint"
    lake.append(at(NOON), mode=WriteMode.OVERWRITE)
    assert list(maintenance.findings()) == [], "those files are not live any more"


def test_the_doctor_looks_at_no_log_where_no_partition_is_an_instant(lake):
    lake.create(TEXTS, "p")
    write_deltalake(lake.uri, texts("2026-01-01 00:00:00"), mode="append")
    assert list(lake.storage.maintenance(lake.table).findings()) == []


def test_a_late_task_brings_no_dropped_table_back(lake):
    """Its folder, and one for a partition, would be in the way of the next table of this name."""
    schema = pa.schema([("id", pa.int64()), ("key", pa.string())])
    table = lake.create(schema, "key")
    writer = lake.factory().create_writer(WriterInitContext(attempt=new_attempt_id()))
    lake.storage.catalog().drop_table(table.path)
    writer.write(pa.record_batch([pa.array([1]), pa.array(["a"])], schema=schema))
    with pytest.raises(TableError, match="does not see the table"):
        writer.complete()
    writer.abort()
    assert not Path(lake.uri).exists()


def test_a_task_that_could_not_look_does_not_say_that_the_table_is_gone(lake):
    schema = pa.schema([("id", pa.int64())])
    lake.create(schema)
    writer = lake.factory().create_writer(WriterInitContext(attempt=new_attempt_id()))
    log = Path(lake.uri, "_delta_log")
    log.rename(log.with_name("aside"))
    log.symlink_to(log.name)
    writer.write(pa.record_batch([pa.array([1])], schema=schema))
    with pytest.raises(StorageError, match="looking for the table, because too many levels of symbolic links"):
        writer.complete()
    writer.abort()


def test_partition_columns_are_in_the_log_and_not_in_the_files(lake, support):
    lake.create(support.IDS, "v")
    lake.epoch(0, support.ids(1, 2))
    found = [(add["partitionValues"]["v"], pq.read_schema(f"{lake.uri}/{unquote(add['path'])}").names)
             for add in adds(lake)]  # fmt: skip
    assert sorted(found) == [("v1", ["id"]), ("v2", ["id"])]
    assert support.values(lake.read(), "v") == ["v1", "v2"]
