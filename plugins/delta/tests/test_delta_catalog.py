from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from laketier.registry import load_format
from laketier.spi import (
    AddColumn,
    BucketSpec,
    ConfigError,
    FeatureNotSupported,
    IncompatibleTable,
    PartitionField,
    TableDescriptor,
    TableError,
    TableNotFound,
    TablePath,
    UnsafeTable,
    UnsupportedType,
)


def test_create_is_idempotent_and_load_gives_the_same(lake, support):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("r", pa.string())])
    created = lake.create(schema, "r", buckets=BucketSpec(4, ("id",), "iceberg"))
    assert lake.create(schema, "r", buckets=BucketSpec(4, ("id",), "iceberg")) == created == lake.table
    assert created.table_uuid == str(DeltaTable(lake.uri).metadata().id)
    assert created.descriptor.buckets == BucketSpec(4, ("id",), "iceberg")
    assert created.descriptor.partition_by == (PartitionField("r"),)
    assert created.schema == schema


def test_a_warehouse_that_is_a_file(lake, support, tmp_path):
    (tmp_path / "warehouse").write_text("theirs")
    with pytest.raises(ConfigError, match="creating the table was refused"):
        lake.storage.catalog().create_table(support.PATH, TableDescriptor(pa.schema([("id", pa.int64())])))
    assert (tmp_path / "warehouse").read_text() == "theirs"


def test_creating_in_a_race_makes_one_table(lake):
    barrier = threading.Barrier(4)
    found = []

    def create():
        barrier.wait()
        found.append(lake.create())

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len({table.table_uuid for table in found}) == 1
    assert DeltaTable(lake.uri).version() == 0


def test_another_table_under_the_name_is_refused(lake, support):
    lake.create(pa.schema([("id", pa.int64()), ("r", pa.string())]), "r", buckets=BucketSpec(4, ("id",)))
    for schema, partitions, buckets in (
        (pa.schema([("id", pa.int32()), ("r", pa.string())]), ["r"], BucketSpec(4, ("id",))),
        (pa.schema([pa.field("id", pa.int64(), nullable=False), ("r", pa.string())]), ["r"], BucketSpec(4, ("id",))),
        (pa.schema([("id", pa.int64()), ("r", pa.string())]), [], BucketSpec(4, ("id",))),
        (pa.schema([("id", pa.int64()), ("r", pa.string())]), ["r"], BucketSpec(8, ("id",))),
    ):
        with pytest.raises(IncompatibleTable, match="exists with another"):
            lake.create(schema, *partitions, buckets=buckets)


def test_a_folder_of_something_else_is_refused(lake):
    folder = Path(lake.uri)
    folder.mkdir(parents=True)
    (folder / "data.parquet").write_bytes(b"PAR1")
    with pytest.raises(IncompatibleTable, match=r"data\.parquet"):
        lake.create()
    assert [path.name for path in folder.iterdir()] == ["data.parquet"]


def test_what_the_format_can_not_do_is_refused_and_makes_nothing(lake, support):
    schema = pa.schema(
        [("id", pa.int64()), ("f", pa.float64()), ("d", pa.decimal128(9, 2)), ("ts", pa.timestamp("us", "UTC"))]
    )
    for error, descriptor in (
        (FeatureNotSupported, TableDescriptor(schema, (PartitionField.parse("day(ts)"),))),
        (UnsupportedType, TableDescriptor(schema, (PartitionField("f"),))),
        (UnsupportedType, TableDescriptor(schema, (PartitionField("d"),))),
        (ConfigError, TableDescriptor(schema.empty_table().select(["id"]).schema, (PartitionField("id"),))),
        (ConfigError, TableDescriptor(schema, (PartitionField("id"), PartitionField("id")))),
        (ConfigError, TableDescriptor(schema, buckets=BucketSpec(4, ("id",), "nonsense"))),
        (ConfigError, TableDescriptor(schema, properties={"delta.checkpointInterval": "soon"})),
        (UnsafeTable, TableDescriptor(schema, properties={"delta.setTransactionRetentionDuration": "interval 1 day"})),
    ):
        with pytest.raises(error):
            lake.storage.catalog().create_table(support.PATH, descriptor)
        assert lake.storage.catalog().list_tables() == []


def test_properties_that_delta_rs_panics_of_are_refused_by_their_names(lake, support):
    both = {"delta.checkpointPolicy": "v2", "delta.enableDeletionVectors": "true"}
    schema = pa.schema([("id", pa.int64())])
    with pytest.raises(ConfigError, match="panicked while it created the table") as refused:
        lake.storage.catalog().create_table(support.PATH, TableDescriptor(schema, properties=both))
    assert refused.value.fix == "Leave one of the properties out: delta.checkpointPolicy, delta.enableDeletionVectors."
    assert lake.storage.catalog().list_tables() == []
    lake.storage.catalog().create_table(support.PATH, TableDescriptor(schema, properties=dict([both.popitem()])))


def test_loading_and_dropping_what_is_not_there(lake, support):
    catalog = lake.storage.catalog()
    for action in (catalog.load_table, catalog.drop_table):
        with pytest.raises(TableNotFound, match=r"db/t"):
            action(support.PATH)
    assert catalog.list_tables() == catalog.list_tables("db") == []


def test_a_table_that_is_created_while_it_is_looked_for(lake, support, tmp_path, monkeypatch):
    """delta-rs lists the log before the first entry is there, and what looks after it finds the entry."""
    import deltalake

    created = lake.create()
    log, away = Path(lake.uri) / "_delta_log", tmp_path / "away"
    log.rename(away)
    looks = []

    def looks_too_early(*args, **kwargs):
        looks.append(args)
        try:
            return DeltaTable(*args, **kwargs)
        except deltalake.exceptions.TableNotFoundError:
            away.rename(log)
            raise

    monkeypatch.setattr(deltalake, "DeltaTable", looks_too_early)
    assert lake.storage.catalog().load_table(support.PATH).table_uuid == created.table_uuid
    assert len(looks) == 2


def test_dropping_removes_the_table_and_its_watermarks(lake, support):
    lake.create()
    lake.epoch(0)
    lake.storage.catalog().drop_table(support.PATH)
    assert list(Path(lake.uri).parent.iterdir()) == []
    lake.create()
    assert lake.committer().open().watermark("p") is None


def test_a_table_with_another_inside_is_not_dropped(lake, support):
    lake.create()
    lake.epoch(0)
    inner = f"{lake.uri}/archive/old"
    write_deltalake(inner, support.ids(7))
    with pytest.raises(IncompatibleTable, match="archive/old"):
        lake.storage.catalog().drop_table(support.PATH)
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == [0]
    assert support.values(DeltaTable(inner).to_pyarrow_table()) == [7]


def test_listing_finds_delta_tables_only(lake, support):
    catalog = lake.storage.catalog()
    for name in ("b.y", "a.z", "a.x"):
        catalog.create_table(TablePath.parse(name), TableDescriptor(support.IDS))
    Path(lake.warehouse, "a", "folder").mkdir()
    Path(lake.warehouse, "a", "_hidden", "_delta_log").mkdir(parents=True)
    assert [str(path) for path in catalog.list_tables()] == ["a.x", "a.z", "b.y"]
    assert catalog.list_tables("b") == [TablePath("b", "y")]


def test_listing_leaves_out_tables_whose_names_no_table_can_have(lake, support, caplog):
    catalog = lake.storage.catalog()
    for name in ("a.x", "b.y"):
        catalog.create_table(TablePath.parse(name), TableDescriptor(support.IDS))
    warehouse = Path(lake.warehouse)
    for theirs in ("a/orders v2", "my data/x", "a/größe"):
        shutil.copytree(warehouse / "a" / "x", warehouse / theirs)
    (warehouse / "a" / "no table").mkdir()
    assert [str(path) for path in catalog.list_tables()] == ["a.x", "b.y"]
    assert "orders v2" in caplog.text
    assert "no table" not in caplog.text


def test_adding_a_column_is_idempotent_and_keeps_watermarks(lake, support):
    lake.create()
    lake.epoch(0)
    catalog = lake.storage.catalog()
    added = catalog.alter_table(support.PATH, [AddColumn(pa.field("extra", pa.large_string()))])
    assert added.schema.field("extra") == pa.field("extra", pa.string())
    again = catalog.alter_table(support.PATH, [AddColumn(pa.field("extra", pa.string()))])
    assert (again.snapshot_id, again.schema) == (added.snapshot_id, added.schema)
    assert lake.committer().open().watermark("p").token.epoch == 0
    lake.epoch(1, pa.table({"id": [1], "extra": ["new"]}))
    assert sorted(lake.read().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 0, "v": "v0", "extra": None},
        {"id": 1, "v": None, "extra": "new"},
    ]


@pytest.mark.parametrize(
    "field",
    [pa.field("v", pa.int64()), pa.field("V", pa.string()), pa.field("new", pa.string(), nullable=False)],
    ids=str,
)
def test_columns_that_do_not_fit_are_not_added(lake, support, field):
    lake.create()
    version = lake.table.snapshot_id
    with pytest.raises(IncompatibleTable, match="can't be added"):
        lake.storage.catalog().alter_table(support.PATH, [AddColumn(field)])
    assert lake.table.snapshot_id == version


def test_adding_a_column_loses_no_race(lake, support, monkeypatch):
    from deltalake.table import TableAlterer

    lake.create()
    add_columns = TableAlterer.add_columns
    rivals = iter([1, 2])

    def late(self, *args, **kwargs):
        if (number := next(rivals, None)) is not None:
            write_deltalake(lake.uri, support.ids(number), mode="append")
        return add_columns(self, *args, **kwargs)

    monkeypatch.setattr(TableAlterer, "add_columns", late)
    table = lake.storage.catalog().alter_table(support.PATH, [AddColumn(pa.field("extra", pa.int64()))])
    assert table.schema.names == ["id", "v", "extra"]
    assert support.values(lake.read()) == [1, 2]


def test_a_broken_log_and_one_that_can_not_be_reached_are_named(lake):
    lake.create()
    Path(lake.uri, "_delta_log", f"{0:020}.json").write_text("{broken")
    with pytest.raises(TableError, match="_delta_log"):
        _ = lake.table


def test_tables_of_others_are_loaded(lake, support):
    write_deltalake(lake.uri, support.ids(1, 2), configuration={"delta.checkpointInterval": "7"})
    assert lake.table.descriptor.properties == {"delta.checkpointInterval": "7"}
    lake.epoch(0, support.ids(3))
    assert support.values(lake.read()) == [1, 2, 3]


def test_the_log_says_what_laketier_set(lake):
    lake.create(buckets=BucketSpec(4, ("id",)))
    entry = Path(lake.uri, "_delta_log", f"{0:020}.json").read_text()
    metadata = next(json.loads(line)["metaData"] for line in entry.splitlines() if '"metaData"' in line)
    assert metadata["configuration"]["delta.checkpointInterval"] == "10"
    assert json.loads(metadata["configuration"]["laketier.buckets"])["count"] == 4


@pytest.mark.parametrize("name", ["laketier.buckets", "laketier.primary-key"])
def test_a_new_table_has_no_property_of_laketiers_own(lake, name):
    """It was made, called damaged, and stayed."""
    with pytest.raises(IncompatibleTable, match=name) as refusal:
        lake.create(**{name: "x"})
    assert refusal.value.fix
    assert not Path(lake.uri).exists()


@pytest.mark.parametrize("name", ["a%20b", "a%2Fb", "a\\b", "a\nb", "a\x7fb", "_delta_log"])
def test_warehouses_that_delta_rs_looks_for_elsewhere_are_refused(tmp_path, support, name):
    """It made a table in one folder, looked for it in another, and called it damaged."""
    for warehouse in (str(tmp_path / name), str(tmp_path / name / "below"), (tmp_path / name).as_uri()):
        with pytest.raises(ConfigError, match="in its path"):
            support.DeltaLake(warehouse, {}).create()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("warehouse", ["s3://bucket/a?b", "s3://bucket/a#b", "s3a://bucket/a%20b"])
def test_object_stores_take_no_names_that_end_a_url(support, warehouse):
    with pytest.raises(ConfigError, match="in its path"):
        support.DeltaLake(warehouse, {}).storage.catalog()


@pytest.mark.parametrize("name", ["with blank", "a%b", "%", "a#b", "a?b", "ünï", "a[b]*{}", "a+b&c=d", "-x", ".x"])
def test_other_odd_warehouses_hold_tables_that_others_read(tmp_path, support, name):
    lake = support.DeltaLake(str(tmp_path / name), {})
    lake.create()
    lake.append(support.ids(1, 2))
    lake.append(support.ids(3))
    assert support.values(DeltaTable(lake.uri).to_pyarrow_table()) == support.values(lake.read()) == [1, 2, 3]


@pytest.mark.parametrize("path", [TablePath("db", "_delta_log"), TablePath("_delta_log", "t")], ids=str)
def test_the_name_of_the_log_is_refused_for_a_table(lake, tmp_path, path):
    with pytest.raises(ConfigError, match="_delta_log"):
        lake.storage.catalog().create_table(path, TableDescriptor(pa.schema([("id", pa.int64())])))
    assert list(tmp_path.iterdir()) == []


def test_tables_whose_names_begin_with_an_underscore_are_listed(lake):
    path = TablePath("_db", "_t")
    lake.storage.catalog().create_table(path, TableDescriptor(pa.schema([("id", pa.int64())])))
    assert lake.storage.catalog().list_tables() == lake.storage.catalog().list_tables("_db") == [path]


def test_the_ways_to_open_a_table_are_those_of_four_readers(lake):
    lake.create()
    shown = load_format("delta").open_with(lake.table)
    assert list(shown) == ["deltalake", "Polars", "DuckDB", "Spark"]
    assert all(lake.uri in line for line in shown.values())
