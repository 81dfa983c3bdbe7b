from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from laketier import kit
from laketier.config import parse_options
from laketier.kit import failpoints
from laketier.spi import (
    AddColumn,
    BucketSpec,
    ConfigError,
    CorruptTable,
    Feature,
    FeatureNotSupported,
    IncompatibleTable,
    LakeStorageConfig,
    PartitionField,
    Passthrough,
    RenameColumn,
    RowsChanged,
    ScanRequest,
    StorageError,
    TableDescriptor,
    TableNotFound,
    TablePath,
    UnsafeTable,
    UnsupportedType,
    WidenColumn,
)
from laketier_lance import catalog as module
from laketier_lance import history, source
from laketier_lance.location import normalise
from laketier_lance.options import LanceOptions
from laketier_lance.plugin import LancePlugin, laketier_format

IDS = pa.schema([("id", pa.int64())])


@pytest.fixture
def catalog(table):
    return table.storage.catalog()


def test_importing_the_plugin_imports_no_lance():
    code = "import sys, laketier_lance.plugin as p; p.laketier_format(); print('lance' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_every_feature_is_declared():
    assert set(laketier_format().features) == set(Feature)


def test_creating_again_returns_the_same_table(table, catalog):
    table.append(0, 1)
    again = catalog.create_table(table.path, TableDescriptor(table.schema.with_metadata({"other": "metadata"})))
    assert (again.table_uuid, again.snapshot_id) == (table.info.table_uuid, 2)


def test_field_ids_of_another_format_are_left_behind(catalog, table):
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "7"})])
    catalog.create_table(TablePath("db", "new"), TableDescriptor(schema))
    assert not lance.dataset(f"{table.warehouse}/db/new.lance").schema.field("id").metadata


@pytest.mark.parametrize(
    "schema",
    [
        IDS,
        pa.schema([("id", pa.int64()), ("name", pa.string())]),
        pa.schema([("name", pa.string()), pa.field("id", pa.int64(), nullable=False)]),
        pa.schema([pa.field("id", pa.int32(), nullable=False), ("name", pa.string())]),
    ],
    ids=["fewer", "nullable", "other order", "other type"],
)
def test_another_schema_under_the_same_name_is_refused(table, catalog, schema):
    with pytest.raises(IncompatibleTable, match="another schema"):
        catalog.create_table(table.path, TableDescriptor(schema))


@pytest.mark.parametrize(
    ("descriptor", "feature"),
    [
        (TableDescriptor(IDS, partition_by=(PartitionField("id"),)), Feature.PARTITIONING),
        (TableDescriptor(IDS, partition_by=(PartitionField.parse("bucket(4, id)"),)), Feature.PARTITION_TRANSFORMS),
        (TableDescriptor(IDS, buckets=BucketSpec(4, ("id",))), Feature.BUCKETING),
    ],
)
def test_what_lance_has_not_is_refused(catalog, table, descriptor, feature):
    with pytest.raises(FeatureNotSupported) as refusal:
        catalog.create_table(TablePath("db", "new"), descriptor)
    assert refusal.value.feature == feature.value
    assert catalog.list_tables() == [table.path]


def test_a_primary_key_comes_back(catalog, table):
    path = TablePath("db", "new")
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])
    assert catalog.create_table(path, TableDescriptor(schema, primary_key=("id",))).descriptor.primary_key == ("id",)
    assert catalog.load_table(table.path).descriptor.primary_key == ()
    lance.dataset(catalog.load_table(path).location).drop_columns(["id"])
    assert catalog.load_table(path).descriptor.primary_key == (), "others took a column of it away"


def test_comment_and_properties_come_back(catalog):
    descriptor = TableDescriptor(IDS, comment="ü", properties={"a": "b"})
    info = catalog.create_table(TablePath("db", "new"), descriptor)
    assert (info.descriptor.comment, info.descriptor.properties) == ("ü", {"a": "b"})


def test_tables_are_listed_per_database_and_others_left_out(table, catalog):
    catalog.create_table(TablePath("a", "x"), TableDescriptor(IDS))
    (table.warehouse / "db" / "folder").mkdir()
    (table.warehouse / "db" / "half.lance" / "data").mkdir(parents=True)
    (table.warehouse / "db" / "file.lance").touch()
    (table.warehouse / "not a name").mkdir()
    assert catalog.list_tables() == [TablePath("a", "x"), table.path]
    assert catalog.list_tables("a") == [TablePath("a", "x")]
    assert catalog.list_tables("none") == []
    (table.warehouse / "lost+found").symlink_to("lost+found")
    assert catalog.list_tables() == [TablePath("a", "x"), table.path], "it is nobody's to look at"
    (table.warehouse / "db" / "loop.lance").symlink_to("loop.lance")
    with pytest.raises(StorageError, match="tables were listed"):
        catalog.list_tables()


def test_an_empty_warehouse_has_no_tables_and_is_not_made(tmp_path):
    storage = LancePlugin().create_storage(LakeStorageConfig(str(tmp_path / "no"), LanceOptions()))
    assert storage.catalog().list_tables() == []
    assert not (tmp_path / "no").exists()


def test_a_missing_table_is_not_found(catalog):
    path = TablePath("db", "none")
    for action in (catalog.load_table, catalog.drop_table, lambda p: catalog.alter_table(p, [])):
        with pytest.raises(TableNotFound):
            action(path)


@pytest.mark.parametrize("name", ["notes.txt", "theirs/notes.txt"])
def test_a_table_is_not_made_where_something_else_lies(table, catalog, name):
    """A drop would take it away with the table."""
    notes = Path(table.location).with_name("other.lance") / name
    notes.parent.mkdir(parents=True)
    notes.write_text("theirs")
    with pytest.raises(IncompatibleTable, match=name.partition("/")[0]):
        catalog.create_table(TablePath("db", "other"), TableDescriptor(IDS))
    assert notes.read_text() == "theirs"
    notes.unlink()
    if notes.parent.name == "theirs":
        notes.parent.rename(notes.parent.with_name("_versions"))  # as a creation that was killed leaves it
    catalog.create_table(TablePath("db", "other"), TableDescriptor(IDS))


def test_dropping_removes_the_data(table, catalog):
    table.append(0, 1)
    catalog.drop_table(table.path)
    assert not Path(table.location).exists()
    assert catalog.list_tables() == []


def test_a_drop_that_is_cut_short_leaves_no_part_of_the_table(table, catalog, monkeypatch):
    """Lance itself removes one file after the other."""
    table.append(0, 1)
    monkeypatch.setenv(failpoints.VARIABLE, "drop.after_rename=error")
    with pytest.raises(kit.FailpointError):
        catalog.drop_table(table.path)
    monkeypatch.delenv(failpoints.VARIABLE)
    assert catalog.list_tables() == []
    with pytest.raises(TableNotFound):
        catalog.load_table(table.path)
    [left] = Path(table.location).parent.iterdir()
    assert left.name.startswith(".dropped-")
    catalog.create_table(table.path, TableDescriptor(IDS))
    catalog.drop_table(table.path)
    assert list(Path(table.location).parent.iterdir()) == []


def test_no_column_is_added_to_files_of_the_oldest_kind(table, catalog, monkeypatch):
    """Lance says that it never will, so nobody tries again."""
    where = Path(table.location).with_name("oldest.lance")
    lance.write_dataset(pa.table({"id": [1]}), where, data_storage_version="legacy")
    asked = []
    monkeypatch.setattr(
        "laketier_lance.catalog._add_columns", lambda *_, real=module._add_columns: (asked.append(1), real(*_))
    )
    with pytest.raises(IncompatibleTable, match="Lance can't change these columns"):
        catalog.alter_table(TablePath(table.path.database, "oldest"), [AddColumn(pa.field("more", pa.int64()))])
    assert len(asked) == 1


def test_adding_a_column_is_idempotent_and_keeps_ids(table, catalog):
    table.append(0, 1)
    change = AddColumn(pa.field("more", pa.struct([("x", pa.int32())])))
    one = catalog.alter_table(table.path, [change, AddColumn(pa.field("last", pa.string()))])
    two = catalog.alter_table(table.path, [change])
    assert one.schema.equals(two.schema, check_metadata=True)
    assert one.snapshot_id == two.snapshot_id
    assert one.schema.names == ["id", "name", "more", "last"]
    assert one.schema_fingerprint != table.info.schema_fingerprint
    assert table.open().to_table(columns=["more"]).column("more").to_pylist() == [None]


def test_pylance_reads_what_was_renamed_and_widened(table, catalog):
    table.append(0, 1)
    before = table.open().to_table().to_pydict()
    kind = table.info.schema.field("name").type
    assert kind == pa.string()
    catalog.alter_table(table.path, [AddColumn(pa.field("n", pa.int32()))])
    catalog.alter_table(table.path, [WidenColumn("n", pa.int64()), RenameColumn("n", "m"), RenameColumn("name", "t")])
    read = table.open().to_table()
    assert read.schema.field("m").type == pa.int64()
    assert read.select(["id", "t"]).to_pydict() == {"id": before["id"], "t": before["name"]}


@pytest.mark.parametrize("name", ["_rowid", "_row_created_at_version", "`a`"])
def test_a_name_that_no_new_column_may_have_is_refused_for_an_old_one(table, name):
    """Lance renames it, and could not be written or read afterwards."""
    with pytest.raises(UnsupportedType, match="name of a column"):
        table.storage.catalog().alter_table(table.path, [RenameColumn("name", name)])
    assert "name" in table.info.schema.names


def test_changes_have_the_values_of_a_column_that_was_widened(table, catalog):
    """Lance writes it anew, as a column with another id."""
    catalog.alter_table(table.path, [AddColumn(pa.field("n", pa.int16()))])
    table.reload()
    rows = table.rows(0, 1).append_column("n", pa.array([7, None], pa.int16()))
    start = table.open().version + 1
    table.round(0).commit([table.stage(rows)])

    def told(name):
        changes, source = table.storage.changes(table.info), table.storage.source(table.info)
        plan = changes.plan(start, changes.versions().latest)
        return [b.column(name).to_pylist() for split in plan.splits for b in source.read(split, plan.schema)]

    for kind in (pa.int32(), pa.int64()):
        catalog.alter_table(table.path, [WidenColumn("n", kind)])
        table.reload()
        assert told("n") == [[7, None]]
    catalog.alter_table(table.path, [RenameColumn("n", "m")])
    table.reload()
    with pytest.raises(RowsChanged, match="a wider one, m, is in its place"):
        told("m")


@pytest.mark.parametrize(
    ("field", "error"),
    [
        (pa.field("id", pa.string()), IncompatibleTable),
        (pa.field("ID", pa.string()), IncompatibleTable),
        (pa.field("new", pa.int32(), nullable=False), IncompatibleTable),
        (pa.field("new", pa.string_view()), UnsupportedType),
    ],
)
def test_changes_that_do_not_fit_are_refused_and_none_is_applied(table, catalog, field, error):
    with pytest.raises(error):
        catalog.alter_table(table.path, [AddColumn(pa.field("good", pa.int32())), AddColumn(field)])
    assert catalog.load_table(table.path).schema.names == ["id", "name"]


def test_a_damaged_dataset_is_corrupt(table, catalog):
    for manifest in (Path(table.location) / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"garbage")
    with pytest.raises(CorruptTable):
        catalog.load_table(table.path)


RACER = """
import sys, pyarrow as pa
import lance
from laketier.spi import LakeStorageConfig, TableDescriptor, TablePath
from laketier_lance.plugin import LancePlugin, LanceOptions
catalog = LancePlugin().create_storage(LakeStorageConfig(sys.argv[1], LanceOptions())).catalog()
descriptor = TableDescriptor(pa.schema([("i", pa.int8())]))
for line in sys.stdin:
    path = TablePath("db", line.strip())
    print(catalog.create_table(path, descriptor).table_uuid, flush=True)
"""


def test_racing_creators_get_one_table(tmp_path):
    # lance.write_dataset(mode="create") fails this: about one race in five has two winners.
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for number in range(40):
        for racer in racers:
            racer.stdin.write(f"t{number}\n")
            racer.stdin.flush()
        first, second = (racer.stdout.readline() for racer in racers)
        assert first == second != ""
        assert lance.dataset(f"{tmp_path}/db/t{number}.lance").version == 1
    for racer in racers:
        racer.communicate()
        assert racer.returncode == 0


def test_options_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"lake\.lance\.max-rows-per-group"):
        LancePlugin().create_storage(LakeStorageConfig(str(tmp_path), LanceOptions(max_rows_per_group=1024)))
    with pytest.raises(ConfigError, match=r"lake\.lance\.max-rows-per-file = 0 is too small"):
        parse_options(LanceOptions, {"max-rows-per-file": 0}, prefix="lake.lance.", origin="here")


def test_an_http_endpoint_allows_http():
    def options(**storage):
        return LanceOptions(storage=Passthrough(storage)).storage_options()

    assert options(endpoint="http://host:1")["allow_http"] == "true"
    assert options(aws_endpoint="HTTP://host:1")["allow_http"] == "true"
    assert "allow_http" not in options(endpoint="https://host")
    assert options(endpoint="http://host", allow_http="false")["allow_http"] == "false"


def test_secrets_do_not_show(table):
    options = LanceOptions(storage=Passthrough({"secret_access_key": "hunter2"}))
    storage = LancePlugin().create_storage(LakeStorageConfig(str(table.warehouse), options))
    shown = [repr(options), repr(storage.tiering_factory(table.info)), repr(storage.source(table.info))]
    assert not any("hunter2" in text for text in shown)


def test_a_warehouse_may_have_a_name_that_urls_would_encode(tmp_path):
    warehouse = tmp_path / "a b%20#ü"
    storage = LancePlugin().create_storage(LakeStorageConfig(warehouse.as_uri(), LanceOptions()))
    info = storage.catalog().create_table(TablePath("db", "t"), TableDescriptor(IDS))
    assert info.location == f"{warehouse}/db/t.lance"
    assert storage.catalog().list_tables() == [TablePath("db", "t")]


def test_the_lines_that_open_a_table_run_without_laketier(table):
    table.append(0, 1, 2)
    lines = LancePlugin().open_with(table.info)
    code = "import sys\n"
    for line in lines.values():
        body, _, last = line.rpartition("; ")
        code += f"{body}\nresult = {last}\nprint(len(result))\n"
    code += "assert 'laketier' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["2"] * len(lines), done.stderr


def test_a_store_that_lance_does_not_know_is_refused():
    catalog = LancePlugin().create_storage(LakeStorageConfig("nope://lake", LanceOptions())).catalog()
    path = TablePath("db", "t")
    for action in (catalog.list_tables, lambda: catalog.load_table(path), lambda: create(catalog, path)):
        with pytest.raises(ConfigError, match="does not know this kind of store"):
            action()


def create(catalog, path):
    catalog.create_table(path, TableDescriptor(IDS))


def foreign(table, rows, **options):
    """A dataset that laketier did not make, as a table."""
    lance.write_dataset(rows, f"{table.warehouse}/db/theirs.lance", **options)
    return table.storage.catalog().load_table(TablePath("db", "theirs"))


def test_a_dataset_of_a_file_format_that_is_not_written_here_is_refused_for_writing(table):
    info = foreign(table, pa.table({"id": [1]}), data_storage_version="legacy")
    with pytest.raises(UnsafeTable, match=r"2\.0, 2\.1 and 2\.2"):
        table.storage.tiering_factory(info)
    state = table.storage.state(info)
    assert (state.snapshot_id, state.watermark("p")) == (info.snapshot_id, None)


def test_a_dataset_with_a_type_that_is_not_written_here_can_be_read(table):
    rows = pa.table({"id": [1, 2], "d": pa.array(["a", None]).dictionary_encode()})
    info = foreign(table, rows)
    with pytest.raises(UnsupportedType, match="'d'"):
        table.storage.tiering_factory(info)
    source = table.storage.source(info)
    plan = source.plan(ScanRequest())
    read = pa.Table.from_batches([b for split in plan.splits for b in source.read(split, plan.schema)])
    assert read.to_pylist() == rows.to_pylist()


def test_creating_what_others_made_with_the_same_schema_returns_it(table):
    info = foreign(table, pa.table({"id": [1]}))
    assert table.storage.catalog().create_table(info.path, TableDescriptor(IDS)).table_uuid == info.table_uuid
    with pytest.raises(IncompatibleTable):
        table.storage.catalog().create_table(info.path, TableDescriptor(table.schema))


@pytest.mark.parametrize("name", ["a\nb", "a\x7fb"])
def test_a_warehouse_that_lance_can_not_address_is_no_damaged_table(tmp_path, name):
    with pytest.raises(ConfigError, match="control characters in its path"):
        normalise(str(tmp_path / name))


def look_at_history(table):
    table.storage.history(table.info).snapshots(3)


def read_as_of_a_moment(table):
    table.storage.source(table.info).plan(ScanRequest(as_of=1 << 50))


@pytest.mark.parametrize(("module_of", "look"), [(history, look_at_history), (source, read_as_of_a_moment)])
def test_a_table_that_is_dropped_before_its_versions_are_listed_is_told_as_gone(
    table, catalog, monkeypatch, module_of, look
):
    """A listing of what is gone is empty, and raises nothing: the history was told as one without versions."""
    table.append(0, 1)
    opened = module_of.open_dataset

    def dropped_then(*arguments):
        dataset = opened(*arguments)
        catalog.drop_table(table.path)
        return dataset

    monkeypatch.setattr(module_of, "open_dataset", dropped_then)
    with pytest.raises(TableNotFound, match="dropped meanwhile"):
        look(table)
