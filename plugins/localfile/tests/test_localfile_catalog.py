"""Create, load, alter, drop and list."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.bucketing import assigner_for
from laketier.spi import (
    AddColumn,
    BucketSpec,
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    IncompatibleData,
    IncompatibleTable,
    LakeStorageConfig,
    PartitionField,
    StagedFileLost,
    TableDescriptor,
    TableNotFound,
    TablePath,
    UnsafeTable,
    UnsupportedType,
    WriterInitContext,
    new_attempt_id,
)
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.plugin import LocalFilePlugin
from laketier_localfile.table import LocalFileTable

SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string())])


def catalog(table: Any) -> Any:
    return table.storage.catalog()


def test_create_is_idempotent_and_another_shape_is_refused(table: Any) -> None:
    table.round(0)
    info = table.create()
    assert (info.table_uuid, info.snapshot_id) == (table.info.table_uuid, 1)
    same = SCHEMA.with_metadata({"made": "elsewhere"})
    assert catalog(table).create_table(table.path, TableDescriptor(same)).table_uuid == info.table_uuid
    for descriptor in (
        TableDescriptor(pa.schema([("id", pa.int32()), ("region", pa.string())])),
        TableDescriptor(pa.schema([pa.field("id", pa.int64(), nullable=False), ("region", pa.string())])),
        TableDescriptor(SCHEMA, (PartitionField("region"),)),
        TableDescriptor(SCHEMA, buckets=BucketSpec(4, ("id",))),
    ):
        with pytest.raises(IncompatibleTable, match="exists with another"):
            catalog(table).create_table(table.path, descriptor)
    assert table.read_ids() == [0, 1, 2, 3]


def test_a_folder_of_something_else_is_no_place_for_a_table(table: Any) -> None:
    other = table.location.with_name("other")
    (other / "_delta_log").mkdir(parents=True)
    with pytest.raises(IncompatibleTable, match="_delta_log"):
        catalog(table).create_table(TablePath("db", "other"), TableDescriptor(SCHEMA))
    assert list(other.iterdir()) == [other / "_delta_log"]
    (table.location.with_name("file")).write_text("x")
    with pytest.raises(IncompatibleTable, match="a file"):
        catalog(table).create_table(TablePath("db", "file"), TableDescriptor(SCHEMA))


def test_a_warehouse_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "w").write_text("x")
    storage = LocalFilePlugin().create_storage(LakeStorageConfig(str(tmp_path / "w")))
    with pytest.raises(ConfigError, match=r"refused by the file system.*another place: it must be a folder"):
        storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(SCHEMA))


def test_load_drop_list(table: Any) -> None:
    other = TablePath("db2", "t")
    catalog(table).create_table(other, TableDescriptor(SCHEMA))
    assert catalog(table).list_tables() == [table.path, other]
    assert catalog(table).list_tables("db2") == [other]
    assert catalog(table).list_tables("nowhere") == []
    catalog(table).drop_table(other)
    assert catalog(table).list_tables() == [table.path]
    assert not (table.warehouse / "db2" / "t").exists()
    for call in (catalog(table).drop_table, catalog(table).load_table):
        with pytest.raises(TableNotFound, match=r"no table db2\.t"):
            call(other)
    with pytest.raises(TableNotFound):
        catalog(table).alter_table(other, [])


def test_a_dropped_table_comes_back_as_another_one(table: Any) -> None:
    old = table.info
    table.round(0)
    catalog(table).drop_table(table.path)
    assert table.create().table_uuid != old.table_uuid
    assert table.read_ids() == []


def test_add_column(table: Any) -> None:
    table.round(0)
    more = pa.field("more", pa.int32(), metadata={"a": "b"})
    info = catalog(table).alter_table(table.path, [AddColumn(more)])
    assert info.schema == pa.schema([*SCHEMA, ("more", pa.int32())])
    assert catalog(table).alter_table(table.path, [AddColumn(more)]).snapshot_id == info.snapshot_id
    table.schema = info.schema
    table.round(1, [{"id": 9, "region": "r", "more": 5}])
    assert table.scan(columns=("more", "id")).to_pylist() == [
        *({"more": None, "id": i} for i in range(4)), {"more": 5, "id": 9},
    ]  # fmt: skip
    assert table.scan(snapshot_id=1).schema == SCHEMA
    assert table.committer().open().watermark("p").token.epoch == 1
    for field in (pa.field("more", pa.int64()), pa.field("id", pa.string()), pa.field("x", pa.int32(), nullable=False)):
        with pytest.raises(IncompatibleTable):
            catalog(table).alter_table(table.path, [AddColumn(field)])
    with pytest.raises(UnsupportedType):
        catalog(table).alter_table(table.path, [AddColumn(pa.field("n", pa.null()))])


def test_what_the_format_can_not_do_is_refused_by_name(table: Any) -> None:
    def create(**options: Any) -> None:
        schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us"))])
        catalog(table).create_table(TablePath("db", "no"), TableDescriptor(schema, **options))

    with pytest.raises(FeatureNotSupported, match="indexing"):
        table.storage.indexer(table.info)
    with pytest.raises(FeatureNotSupported, match="gs://"):
        LocalFilePlugin().create_storage(LakeStorageConfig("gs://bucket/lake"))
    with pytest.raises(ConfigError):
        LocalFilePlugin().create_storage(LakeStorageConfig(" "))
    assert not (table.location.with_name("no")).exists()


def test_partition_columns_that_readers_would_hide_or_misread_are_refused(table: Any) -> None:
    text = pa.string()
    for name, kind in [
        ("_k", text),
        (".k", text),
        *(("k", k) for k in (pa.float64(), pa.binary(), pa.timestamp("ns"))),
    ]:
        with pytest.raises(UnsupportedType):
            catalog(table).create_table(
                TablePath("db", "no"), TableDescriptor(pa.schema([(name, kind)]), (PartitionField(name),))
            )


def test_file_uris_and_relative_warehouses(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table.round(0)
    monkeypatch.chdir(table.warehouse.parent)
    for warehouse in (table.warehouse.as_uri(), table.warehouse.name):
        info = LocalFilePlugin().create_storage(LakeStorageConfig(warehouse)).catalog().load_table(table.path)
        assert info.location == str(table.location)


def test_a_host_that_does_not_see_the_warehouse_is_refused_before_it_writes(table: Any) -> None:
    """As on an executor whose disk is its own."""
    factory = table.factory
    elsewhere = table.warehouse.with_name("elsewhere")
    table.warehouse.rename(elsewhere)
    with pytest.raises(ConfigError, match="does not see the driver's warehouse"):
        factory.create_writer(WriterInitContext(new_attempt_id()))
    table.create()
    with pytest.raises(ConfigError, match="another one now"):
        factory.create_writer(WriterInitContext(new_attempt_id()))


def test_a_file_that_the_driver_does_not_see_is_not_published(table: Any) -> None:
    staged, committer = table.stage(table.ids(0)), table.committer()
    path = table.location / staged.files[0].path
    written = path.read_bytes()
    path.write_bytes(written[:-1])
    with pytest.raises(StagedFileLost, match=r"has \d+ bytes, and its writer wrote"):
        committer.publish(committer.open(), [staged], None)
    path.write_bytes(written.replace(b"region", b"regiom"))
    with pytest.raises(StagedFileLost, match="footer is another one"):
        committer.publish(committer.open(), [staged], None)
    path.unlink()
    with pytest.raises(StagedFileLost, match="does not see the executors' disks"):
        committer.publish(committer.open(), [staged], None)
    assert table.info.snapshot_id == 0


def test_staging_on_another_file_system_is_refused_at_the_start(table: Any, other_device: Path) -> None:
    shutil.rmtree(table.location / "__in_progress")
    (table.location / "__in_progress").symlink_to(other_device)
    with pytest.raises(UnsafeTable, match="another file system"):
        _ = table.factory
    with pytest.raises(UnsafeTable, match="another file system"):
        LocalFileTable(table.location).open()


def test_damaged_metadata_is_told_with_its_file(table: Any) -> None:
    table.round(0)
    for path in (table.log.path(1), table.log.path(0), table.location / "_laketier_manifests" / "table.json"):
        good = path.read_bytes()
        path.write_bytes(good.replace(b":", b";", 9))
        with pytest.raises(CorruptTable, match=path.name):
            table.committer().open()
        path.write_bytes(good)
    assert table.read_ids() == [0, 1, 2, 3]


def test_buckets_are_assigned_and_named(make_table: Any) -> None:
    table = make_table(buckets=BucketSpec(4, ("id",)), partition_by=("region",), options=LocalFileOptions(fold_files=0))
    rows = [{"id": i, "region": "ab"[i % 2]} for i in range(40)]
    table.round(0, rows)
    assigner = assigner_for(table.info.descriptor)
    plan = table.storage.source(table.info).plan(_all())
    seen = 0
    for split in plan.splits:
        for batch in table.storage.source(table.info).read(split, plan.schema):
            assert set(assigner.assign(batch).to_pylist()) == {split.bucket}
            assert set(batch.column("region").to_pylist()) == {dict(split.partition)["region"]}
            assert f"-b{split.bucket:05}-" in split.plain_parquet
            seen += batch.num_rows
    assert seen == 40


def test_a_value_that_is_no_folder_is_refused_while_staging(make_table: Any) -> None:
    table = make_table(partition_by=("region",))
    for value in ("", "x" * 300):
        writer = table.factory.create_writer(WriterInitContext(new_attempt_id()))
        writer.write(pa.RecordBatch.from_pylist([{"id": 1, "region": value}], schema=SCHEMA))
        with pytest.raises(IncompatibleData):
            writer.complete()
        writer.abort()
        writer.abort()
    assert table.staged_files() == []


def _all() -> Any:
    from laketier.spi import ScanRequest

    return ScanRequest()


def test_a_table_with_another_inside_is_not_dropped(table: Any) -> None:
    table.round(0)
    plugin = LocalFilePlugin()
    inner = plugin.create_storage(LakeStorageConfig(table.info.location, plugin.options_type()))
    inner.catalog().create_table(TablePath("inner", "t"), TableDescriptor(SCHEMA))
    with pytest.raises(IncompatibleTable, match="inner/t"):
        catalog(table).drop_table(table.path)
    assert table.read_ids() == [0, 1, 2, 3]
    inner.catalog().drop_table(TablePath("inner", "t"))
    catalog(table).drop_table(table.path)
