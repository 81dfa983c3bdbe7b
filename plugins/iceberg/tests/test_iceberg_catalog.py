"""The catalog, types, options, and what importing costs."""

from __future__ import annotations

import contextlib
import gzip
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError

from laketier.cli.demo.verify import evaluate
from laketier.config import parse_options
from laketier.spi import (
    AddColumn,
    ConfigError,
    CorruptTable,
    Feature,
    FeatureNotSupported,
    IncompatibleTable,
    LakeStorageConfig,
    PartitionField,
    Passthrough,
    RenameColumn,
    StorageError,
    TableDescriptor,
    TableInfo,
    TableNotFound,
    TablePath,
    UnsupportedType,
)
from laketier_iceberg import removal
from laketier_iceberg.connection import EMBEDDED_FILE, EMBEDDED_NAME
from laketier_iceberg.leftovers import foreign_in
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.plugin import IcebergPlugin
from laketier_iceberg.storage import IcebergStorage
from laketier_iceberg.types import TYPE_TABLE, check_types, without_ids

_SAMPLES: dict[str, list[pa.DataType]] = {
    "bool": [pa.bool_()],
    "int8": [pa.int8()],
    "int16": [pa.int16()],
    "int32": [pa.int32()],
    "int64": [pa.int64()],
    "uint8": [pa.uint8()],
    "uint16": [pa.uint16()],
    "uint32": [pa.uint32()],
    "uint64": [pa.uint64()],
    "float16": [pa.float16()],
    "float32": [pa.float32()],
    "float64": [pa.float64()],
    "decimal32, decimal64, decimal128, decimal256": [
        pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(20, 3), pa.decimal256(38, 3)
    ],
    "date32": [pa.date32()],
    "date64": [pa.date64()],
    "time32, time64[us]": [pa.time32("s"), pa.time32("ms"), pa.time64("us")],
    "time64[ns]": [pa.time64("ns")],
    "timestamp[s], timestamp[ms], timestamp[us]": [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us")],
    "timestamp[s, tz], timestamp[ms, tz], timestamp[us, tz]": [
        pa.timestamp("s", "UTC"), pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("us", "+02:00")
    ],
    "timestamp[ns], timestamp[ns, tz]": [pa.timestamp("ns"), pa.timestamp("ns", "UTC")],
    "string, large_string, string_view": [pa.string(), pa.large_string(), pa.string_view()],
    "binary, large_binary, binary_view": [pa.binary(), pa.large_binary(), pa.binary_view()],
    "fixed_size_binary[n]": [pa.binary(7)],
    "struct": [pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])],
    "list, large_list": [pa.list_(pa.int32()), pa.large_list(pa.string())],
    "fixed_size_list[n]": [pa.list_(pa.float32(), 4)],
    "list_view, large_list_view": [pa.list_view(pa.int32()), pa.large_list_view(pa.int32())],
    "map": [pa.map_(pa.string(), pa.list_(pa.int64()))],
    "union": [pa.dense_union([pa.field("a", pa.int64())]), pa.sparse_union([pa.field("a", pa.int64())])],
    "dictionary": [pa.dictionary(pa.int32(), pa.string())],
    "run_end_encoded": [pa.run_end_encoded(pa.int32(), pa.string())],
    "duration, interval": [pa.duration("us"), pa.month_day_nano_interval()],
    "null": [pa.null()],
    "variant": [
        pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})])
    ],
    "extension types": [pa.uuid()],
}  # fmt: skip


def test_the_type_table_and_the_samples_name_the_same_types() -> None:
    assert [row[0] for row in TYPE_TABLE] == list(_SAMPLES)


@pytest.mark.parametrize("row", [row for row in TYPE_TABLE if row[1] == "refused"], ids=lambda row: row[0])
def test_what_the_type_table_refuses_is_refused_with_its_advice(row: tuple[str, str, str]) -> None:
    for kind in _SAMPLES[row[0]]:
        for nested in (kind, pa.list_(kind), pa.struct([("x", kind)]), pa.map_(pa.string(), kind)):
            with pytest.raises(UnsupportedType) as caught:
                check_types(pa.schema([("c", nested)]))
            assert caught.value.fix == row[2]


@pytest.mark.parametrize("kind", [pa.decimal256(40, 2), pa.decimal128(5, -2)], ids=str)
def test_decimals_that_iceberg_does_not_have_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedType, match="38 digits"):
        check_types(pa.schema([("c", kind)]))


def test_what_the_type_table_accepts_comes_back_equal(make: Any) -> None:
    columns = {
        f"c{i}": kind for i, kind in enumerate(k for row in TYPE_TABLE if row[1] != "refused" for k in _SAMPLES[row[0]])
    }
    columns |= {f"l{name}": pa.list_(kind) for name, kind in columns.items() if not pa.types.is_nested(kind)}
    table = make(pa.schema(list(columns.items())))
    raw = {
        name: pa.array(_values(kind)).cast(kind) if not pa.types.is_nested(kind) else None
        for name, kind in columns.items()
    }
    values = {name: array if array is not None else _nested(columns[name], raw) for name, array in raw.items()}
    batch = pa.RecordBatch.from_arrays(list(values.values()), names=list(values))
    table.round(table.token(0), batch)
    read = table.read()
    for name in columns:
        wanted = values[name].cast(read.schema.field(name).type)
        assert read[name].to_pylist() == wanted.to_pylist(), name


def _values(kind: pa.DataType) -> Any:
    import datetime as dt
    from decimal import Decimal

    if pa.types.is_boolean(kind):
        return pa.array([True, None])
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return pa.array([1, None], kind)
    if pa.types.is_decimal(kind):
        return pa.array([Decimal("-1.25"), None]).cast(pa.decimal128(10, kind.scale)).cast(kind)
    if pa.types.is_date(kind):
        return pa.array([dt.date(1969, 1, 1), None])
    if pa.types.is_time(kind):
        return pa.array([dt.time(1, 2, 3), None], pa.time64("us"))
    if pa.types.is_timestamp(kind):
        return pa.array([dt.datetime(1969, 1, 1, 1, 2, 3), None], pa.timestamp("us")).cast(kind)
    if pa.types.is_fixed_size_binary(kind):
        return pa.array([b"1234567", None], kind)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or str(kind) == "binary_view":
        return pa.array([b"\x00\xff", None])
    return pa.array(["é", None])


def _nested(kind: pa.DataType, raw: dict[str, Any]) -> Any:
    if pa.types.is_struct(kind):
        return pa.array([{"a": 1, "b": {"c": "x"}}, None], kind)
    if pa.types.is_map(kind):
        return pa.array([[("k", [1, None])], None], kind)
    inner = next(array for array in raw.values() if array is not None and array.type == kind.value_type)
    return type(pa.array([], kind)).from_arrays(
        pa.array([0, 2, 2], pa.int64() if pa.types.is_large_list(kind) else pa.int32()), inner
    )


def test_creating_is_idempotent_and_another_schema_is_refused(make: Any) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.large_string())])
    first = make(schema, (PartitionField("v"),))
    again = make(schema, (PartitionField("v"),))
    assert again.info == first.info
    assert first.info.schema.field("id").nullable is False
    assert first.info.schema.field("v").metadata == {b"PARQUET:field_id": b"2"}
    for other in (
        TableDescriptor(schema),
        TableDescriptor(schema.remove(0), (PartitionField("v"),)),
        TableDescriptor(pa.schema([("id", pa.int64()), ("v", pa.string())]), (PartitionField("v"),)),
    ):
        with pytest.raises(IncompatibleTable, match="exists with another"):
            first.storage.catalog().create_table(first.info.path, other)


def test_loading_finds_what_was_created(make: Any) -> None:
    made = make(comment="events of all", properties={"owner": "us", "write.metadata.previous-versions-max": "3"})
    info = made.storage.catalog().load_table(made.info.path)
    assert info == made.info
    assert info.descriptor.comment == "events of all"
    assert info.descriptor.properties["owner"] == "us"
    assert info.descriptor.properties["write.metadata.previous-versions-max"] == "3"
    assert info.descriptor.properties["commit.manifest-merge.enabled"] == "true"


def test_columns_are_added_once_and_only_nullable(events: Any) -> None:
    catalog = events.storage.catalog()
    events.round(events.token(0), events.batch(0, 3))
    change = AddColumn(pa.field("tags", pa.list_(pa.struct([("k", pa.string())]))))
    info = catalog.alter_table(events.info.path, [change])
    assert catalog.alter_table(events.info.path, [change]).schema_fingerprint == info.schema_fingerprint
    assert without_ids(info.schema).field("tags").type == pa.list_(pa.field("element", pa.struct([("k", pa.string())])))
    for field in (
        pa.field("tags", pa.string()), pa.field("Tags", change.field.type), pa.field("n", pa.int32(), nullable=False)
    ):  # fmt: skip
        with pytest.raises(IncompatibleTable):
            catalog.alter_table(events.info.path, [AddColumn(field)])
    with pytest.raises(UnsupportedType):
        catalog.alter_table(events.info.path, [AddColumn(pa.field("u", pa.uint8()))])
    with pytest.raises(IncompatibleTable, match="differs from column 'X' by case only"):
        catalog.alter_table(events.info.path, [AddColumn(pa.field(name, pa.int64())) for name in ("X", "x")])
    assert events.committer().open().watermark("p").token.epoch == 0
    assert events.read()["tags"].to_pylist() == [None] * 3


def test_dropping_removes_the_files_and_listing_is_sorted(make: Any, warehouse: Path) -> None:
    tables = [make(name=name) for name in ("b", "a", "c")]
    tables[2].round(tables[2].token(0), tables[2].batch(0, 5))
    catalog = tables[0].storage.catalog()
    assert catalog.list_tables() == [TablePath("db", n) for n in "abc"]
    assert catalog.list_tables("none") == []
    catalog.drop_table(TablePath("db", "c"))
    assert not (warehouse / "db" / "c").exists()
    assert catalog.list_tables("db") == [TablePath("db", "a"), TablePath("db", "b")]
    with pytest.raises(TableNotFound):
        catalog.drop_table(TablePath("db", "c"))
    with pytest.raises(TableNotFound):
        catalog.load_table(TablePath("nowhere", "c"))


def test_a_warehouse_that_does_not_exist_is_not_made_by_looking(storage: Any, warehouse: Path) -> None:
    assert storage.catalog().list_tables() == []
    with pytest.raises(TableNotFound, match=r"catalog\.db"):
        storage.catalog().load_table(TablePath("db", "t"))
    assert not warehouse.exists()


def test_a_folder_of_another_format_is_refused(storage: Any, warehouse: Path) -> None:
    (warehouse / "db" / "t" / "_delta_log").mkdir(parents=True)
    with pytest.raises(IncompatibleTable, match="_delta_log"):
        storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(pa.schema([("id", pa.int64())])))


_ID = "2ff78f99-0e73-49dc-a151-39848808d766"


@pytest.mark.parametrize(
    "name",
    [
        "data",
        "data/notes.txt",
        "data/2026/x.parquet",
        "metadata/customers.avro",
        f"data/part-00000-{_ID}-c000.snappy.parquet",
        f"data/day=1/part-00000-{_ID}.c000.zstd.parquet",
        f"data/{_ID}.parquet",
        f"metadata/customers-{_ID}.avro",
    ],
)
def test_a_folder_of_somebody_elses_with_one_of_icebergs_names_is_refused(
    storage: Any, warehouse: Path, name: str
) -> None:
    """A drop would delete it with the table."""
    theirs = warehouse / "db" / "t" / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    with pytest.raises(IncompatibleTable, match=name):
        storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(pa.schema([("id", pa.int64())])))
    assert theirs.read_text() == "theirs"
    assert storage.catalog().list_tables() == []


def test_a_link_with_one_of_icebergs_names_is_refused(storage: Any, warehouse: Path, tmp_path: Path) -> None:
    """What it leads to is somebody's, whatever lies there."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    place = warehouse / "db" / "t"
    place.mkdir(parents=True)
    (place / "data").symlink_to(theirs)
    with pytest.raises(IncompatibleTable, match="data"):
        storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(pa.schema([("id", pa.int64())])))
    assert (place / "data").readlink() == theirs


@pytest.mark.parametrize(
    "name",
    [
        f"data/00000-0-{_ID}.parquet",
        f"data/day=1/00000-7-{_ID}-00001-deletes.parquet",
        f"data/20260101_010203_00001_ab1c2-{_ID}.parquet",
        f"metadata/00001-{_ID}.gz.metadata.json",
        f"metadata/{_ID}-m0.avro",
        f"metadata/snap-8270633197658268308-1-{_ID}.avro",
    ],
)
def test_files_of_icebergs_writers_are_known(tmp_path: Path, name: str) -> None:
    left = tmp_path / name
    left.parent.mkdir(parents=True)
    left.touch()
    assert foreign_in(tmp_path) == []


def test_a_folder_with_what_a_killed_drop_left_is_taken(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of laketier's own writers and of pyiceberg's."""
    events.round(events.token(0), events.batch(0, 3))
    events.table().append(pa.Table.from_batches([events.batch(3, 5)]))
    folder = Path(events.table().location())
    before = {path for path in folder.rglob("*") if path.is_file()}
    assert len({path.parent for path in before}) == 2
    catalog, path, descriptor = events.storage.catalog(), events.info.path, events.info.descriptor
    removed: list[list[str]] = []
    monkeypatch.setattr(removal, "remove", lambda _, paths: removed.append(list(paths)))
    catalog.drop_table(path)
    monkeypatch.undo()
    (mark,) = {path for path in folder.rglob("*") if path.is_file()} - before
    assert sorted(removed[0]) == sorted(str(path.relative_to(folder)) for path in before)
    assert removed[1:] == [[str(mark.relative_to(folder))]]
    with pytest.raises(TableNotFound):
        catalog.load_table(path)
    catalog.create_table(path, descriptor)
    assert events.ids() == []


def test_damaged_metadata_is_a_corrupt_table(events: Any) -> None:
    location = Path(events.table().metadata_location)
    content = location.read_text()
    for damage in ("", content[:200], "[]"):
        location.write_text(damage)
        with pytest.raises(CorruptTable, match="metadata can't be read"):
            events.storage.catalog().load_table(events.info.path)
    location.unlink()
    with pytest.raises(CorruptTable):
        events.storage.catalog().load_table(events.info.path)


def test_damaged_gzip_metadata_is_a_corrupt_table_and_its_file_is_named(events: Any) -> None:
    table = events.table()
    path = Path(table.metadata_location)
    packed = path.with_name("00009-packed.gz.metadata.json")
    whole = gzip.compress(path.read_bytes())
    packed.write_bytes(whole)
    table.catalog.register_table(("db", "packed"), str(packed))
    packed_path = TablePath("db", "packed")
    assert events.storage.catalog().load_table(packed_path).table_uuid == events.info.table_uuid
    deep = gzip.compress(b"[" * 200_000)
    for damage in (whole[: len(whole) // 2], whole[:40] + b"\xff" * 40 + whole[80:], b"{}", b"", whole[:-4], deep):
        packed.write_bytes(damage)
        with pytest.raises(CorruptTable, match=r"00009-packed\.gz\.metadata\.json: the table's metadata can't be read"):
            events.storage.catalog().load_table(packed_path)


def test_a_table_whose_name_is_none_of_ours_hides_no_other(events: Any, caplog: pytest.LogCaptureFixture) -> None:
    catalog, schema = events.table().catalog, events.table().schema()
    catalog.create_table(("db", "orders v2"), schema)
    catalog.create_namespace("my db")
    catalog.create_table(("my db", "t"), schema)
    assert events.storage.catalog().list_tables() == [events.info.path]
    assert "'db.orders v2' is not listed" in caplog.text
    assert "'my db.t' is not listed" in caplog.text


def test_a_file_that_is_no_catalog_is_a_setting_to_mend(warehouse: Path) -> None:
    warehouse.mkdir()
    (warehouse / "catalog.db").write_bytes(b"not a database" * 100)
    storage = IcebergStorage(LakeStorageConfig(str(warehouse), IcebergOptions()))
    with pytest.raises(ConfigError, match=r"catalog\.db can't be opened"):
        storage.catalog().list_tables()


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "sql"])
def test_another_process_makes_each_table_of_a_catalog_first(tmp_path: Path, embedded: bool) -> None:
    file = tmp_path / "catalog.db"
    settings = Passthrough({} if embedded else {"type": "sql", "uri": f"sqlite:///{file}"})
    storage = IcebergStorage(LakeStorageConfig(str(tmp_path), IcebergOptions(catalog=settings)))
    made: list[str] = []

    def first(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "CREATE TABLE" in statement:
            with contextlib.closing(sqlite3.connect(file)) as other:
                other.execute(statement)
            made.append(statement.split()[2])

    event.listen(Engine, "before_cursor_execute", first)
    try:
        info = storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(pa.schema([("id", pa.int64())])))
    finally:
        event.remove(Engine, "before_cursor_execute", first)
    assert made == ["iceberg_tables", "iceberg_namespace_properties"]
    assert storage.catalog().list_tables() == [info.path]


def test_a_database_that_can_not_be_reached_is_asked_no_more_often_than_by_the_library(tmp_path: Path) -> None:
    """Each time may take as long as its timeout."""
    asked: list[object] = []
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/nowhere/catalog.db"}

    def ask(*_: Any) -> None:
        asked.append(None)

    event.listen(Engine, "do_connect", ask)
    try:
        with pytest.raises(OperationalError):
            load_catalog("other", **properties)
        by_the_library = len(asked)
        storage = IcebergStorage(LakeStorageConfig(str(tmp_path), IcebergOptions(catalog=Passthrough(properties))))
        with pytest.raises(StorageError, match="unable to open database file"):
            storage.catalog().list_tables()
    finally:
        event.remove(Engine, "do_connect", ask)
    assert len(asked) == 2 * by_the_library > 0


@pytest.mark.parametrize(
    ("descriptor", "error"),
    [
        ({"properties": {"format-version": "3"}}, FeatureNotSupported),
        ({"properties": {"laketier.watermark.p": "{}"}}, IncompatibleTable),
    ],
)
def test_what_the_plugin_can_not_do_is_refused_at_create(make: Any, descriptor: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make(**descriptor)


def test_every_feature_is_declared() -> None:
    assert set(IcebergPlugin.features) == set(Feature)


@pytest.mark.parametrize("version", [1, 3])
def test_tables_of_other_versions_are_not_written(events: Any, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    location = Path(events.table().metadata_location)
    import json

    document = json.loads(location.read_text())
    document["format-version"] = version
    if version == 1:
        document["schema"] = document["schemas"][0]
        document["partition-spec"] = []
    else:
        document["next-row-id"] = 0
    location.write_text(json.dumps(document))
    with pytest.raises(FeatureNotSupported, match=f"version {version}"):
        events.storage.tiering_factory(events.info)
    with pytest.raises(FeatureNotSupported, match=f"version {version}"):
        events.committer().open()


def test_another_catalog_by_pyicebergs_own_configuration(tmp_path: Path) -> None:
    options = IcebergOptions(
        catalog_name="elsewhere", catalog=Passthrough({"type": "sql", "uri": f"sqlite:///{tmp_path}/other.sqlite"})
    )
    storage = IcebergStorage(LakeStorageConfig(str(tmp_path / "files"), options))
    info = storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(pa.schema([("id", pa.int64())])))
    assert info.location.startswith(str(tmp_path / "files"))
    assert not (tmp_path / "files" / "catalog.db").exists()
    assert storage.catalog().list_tables() == [info.path]
    storage.catalog().drop_table(info.path)
    assert storage.catalog().list_tables() == []


def test_a_wrong_catalog_says_so_without_its_secrets(tmp_path: Path) -> None:
    secret = "hunter2-very-secret"
    options = IcebergOptions(catalog=Passthrough({"type": "sql", "uri": f"nosuch://u:{secret}@h/db"}))
    storage = IcebergStorage(LakeStorageConfig(str(tmp_path), options))
    with pytest.raises(ConfigError, match="can't be opened") as caught:
        storage.catalog().list_tables()
    assert secret not in str(caught.value)
    assert secret not in repr(storage._settings)


def test_a_remote_warehouse_needs_a_catalog() -> None:
    with pytest.raises(ConfigError, match="needs a catalog"):
        IcebergPlugin().create_storage(LakeStorageConfig("s3://bucket/lake", IcebergOptions()))


@pytest.mark.parametrize("name", ["target-file-rows", "target-file-bytes", "max-open-files"])
def test_options_must_be_positive(name: str) -> None:
    with pytest.raises(ConfigError, match=f"lake.iceberg.{name} = 0 is too small"):
        parse_options(IcebergOptions, {name: 0}, prefix="lake.iceberg.", origin="here")


def test_the_lines_that_open_the_table_open_it(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    events.round(events.token(0), events.batch(0, 7))
    lines = IcebergPlugin().open_with(events.storage.catalog().load_table(events.info.path))
    assert set(lines) == {"pyiceberg", "Polars", "DuckDB", "Spark"}
    for tool in ("pyiceberg", "Polars", "DuckDB"):
        assert evaluate(lines[tool]).num_rows == 7, tool


def test_a_table_of_another_catalog_is_opened_by_that_one(tmp_path: Path) -> None:
    """Also where its files are on this disk: the folder alone does not say which metadata are current."""
    info = TableInfo(
        TablePath("db", "t"),
        TableDescriptor(pa.schema([("id", pa.int64())])),
        "0" * 32,
        str(tmp_path / "db" / "t"),
        None,
    )
    lines = IcebergPlugin().open_with(info)
    assert set(lines) == {"pyiceberg", "Spark"}
    assert all("<your catalog>" in line for line in lines.values())


def _modules_after(program: str, *arguments: str) -> set[str]:
    code = f"import sys\n{program}\nprint(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, env=os.environ
    )
    return set(done.stdout.split())


def test_importing_the_plugin_imports_no_engine() -> None:
    assert not {m for m in _modules_after("import laketier_iceberg.plugin") if m.split(".")[0] == "pyiceberg"}


def test_an_executor_writes_and_reads_with_pyarrow_alone(make: Any, tmp_path: Path) -> None:
    table = make(partition_by=(PartitionField.parse("bucket(2, id)"),))
    table.round(table.token(0), table.batch(0, 4))
    from laketier.spi import ScanRequest

    source = table.storage.source(table.info)
    plan = source.plan(ScanRequest())
    (tmp_path / "job").write_bytes(pickle.dumps((table.factory, source, plan)))
    modules = _modules_after(
        "import pickle\n"
        "from laketier.spi import *\n"
        "import pyarrow as pa\n"
        "factory, source, plan = pickle.load(open(sys.argv[1], 'rb'))\n"
        "writer = factory.create_writer(WriterInitContext(new_attempt_id()))\n"
        "writer.write(pa.record_batch({'id': [1], 's': ['x']}))\n"
        "pack(factory.write_result_serializer, writer.complete())\n"
        "assert sum(b.num_rows for s in plan.splits for b in source.read(s, plan.schema)) == 4\n",
        str(tmp_path / "job"),
    )
    assert not {m for m in modules if m.split(".")[0] in ("pyiceberg", "sqlalchemy")}
    assert "pyiceberg_core" in modules


def test_a_warehouse_made_anew_is_not_mistaken_for_the_old_one(tmp_path: Path) -> None:
    """The connection to the deleted SQLite file still works, and would commit where nobody looks."""
    warehouse = tmp_path / "lake"
    descriptor = TableDescriptor(pa.schema([("id", pa.int64())]))
    path = TablePath("db", "t")
    first = IcebergPlugin().create_storage(LakeStorageConfig(str(warehouse), IcebergOptions())).catalog()
    before = first.create_table(path, descriptor).table_uuid
    shutil.rmtree(warehouse)
    with pytest.raises(TableNotFound):
        first.load_table(path)
    second = IcebergPlugin().create_storage(LakeStorageConfig(str(warehouse), IcebergOptions())).catalog()
    assert second.create_table(path, descriptor).table_uuid != before
    assert second.load_table(path).schema.names == ["id"]


def test_two_fields_of_one_path_are_refused(storage: IcebergStorage) -> None:
    """Iceberg knows fields by their paths."""
    catalog, struct, path = storage.catalog(), pa.struct([("a", pa.int64())]), TablePath("db", "paths")
    with pytest.raises(UnsupportedType, match="same path"):
        catalog.create_table(path, TableDescriptor(pa.schema([("s", struct), ("s.a", pa.int64())])))
    catalog.create_table(path, TableDescriptor(pa.schema([("s", struct), ("x", pa.int64())])))
    changes = (AddColumn(pa.field("s.a", pa.int64())), RenameColumn("x", "s.a"))
    for change in changes:
        with pytest.raises(IncompatibleTable, match="path of another"):
            catalog.alter_table(path, [change])
    assert catalog.load_table(path).schema.names == ["s", "x"]


def test_a_view_is_refused_by_name(storage: Any, warehouse: Path) -> None:
    """As Spark makes them in the same catalog; pyiceberg says that there is no such table."""
    catalog, wanted = storage.catalog(), TableDescriptor(pa.schema([("id", pa.int64())]))
    catalog.create_table(TablePath("db", "t"), wanted)
    file = warehouse / "elsewhere" / "00000-0.metadata.json"
    file.parent.mkdir()
    file.write_text('{"view-uuid": "1", "format-version": 1, "versions": [], "schemas": []}')
    with contextlib.closing(sqlite3.connect(warehouse / EMBEDDED_FILE)) as database, database:
        row = (EMBEDDED_NAME, "db", "v", str(file), None, "VIEW")
        database.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", row)
    path = TablePath("db", "v")
    for refused in (
        lambda: catalog.load_table(path),
        lambda: catalog.create_table(path, wanted),
        lambda: catalog.drop_table(path),
    ):
        with pytest.raises(IncompatibleTable, match=r"db\.v: a view has this name"):
            refused()
    assert [each.table for each in catalog.list_tables("db")] == ["t"]
