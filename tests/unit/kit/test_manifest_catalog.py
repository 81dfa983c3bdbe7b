"""The catalog of tables of files and manifests, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from laketier import kit, spi
from laketier.kit import local_store
from laketier.kit.manifests.log import ManifestLog
from laketier.kit.manifests.manifest import Manifest
from text_lake import PATH, SCHEMA, Lake, TextTable


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


class Checked(TextTable):
    """Tells what it was asked."""

    asked: ClassVar[list[Any]] = []

    @classmethod
    def check_types(cls, schema: pa.Schema) -> None:
        cls.asked.append(schema)


def test_types_are_checked_when_a_table_is_made_and_altered(tmp_path: Path) -> None:
    Checked.asked.clear()
    lake = Lake(tmp_path, Checked)
    assert Checked.asked == [SCHEMA]
    lake.catalog.alter_table(PATH, [spi.AddColumn(pa.field("more", pa.int64()))])
    assert [schema.names for schema in Checked.asked[1:]] == [["id", "more"]]


class Declares(TextTable):
    """Nothing that a format may leave out."""

    features: ClassVar = {feature: spi.unsupported("it is kept poor") for feature in spi.Feature}


@pytest.mark.parametrize(
    ("change", "feature"),
    [
        (spi.AddColumn(pa.field("more", pa.int64())), spi.Feature.ADD_COLUMN),
        (spi.WidenColumn("id", pa.int64()), spi.Feature.WIDEN_TYPE),
        (spi.RenameColumn("id", "key"), spi.Feature.RENAME_COLUMN),
    ],
)
def test_what_a_format_does_not_declare_is_refused(
    tmp_path: Path, change: spi.SchemaChange, feature: spi.Feature
) -> None:
    lake = Lake(tmp_path, Declares)
    for do, wanted in (
        (lambda: lake.catalog.alter_table(PATH, [change]), feature),
        (lambda: lake.catalog.drop_table(PATH), spi.Feature.DROP_TABLE),
    ):
        with pytest.raises(spi.FeatureNotSupported, match=rf"{wanted.value}.*\n?.*it is kept poor"):
            do()
    assert lake.info.schema.equals(SCHEMA)


def test_metadata_of_columns_are_not_kept(tmp_path: Path) -> None:
    lake = Lake(tmp_path, Checked)
    assert lake.info.schema.field("id").metadata is None
    field = pa.field("more", pa.int64(), metadata={"origin": "elsewhere"})
    assert lake.catalog.alter_table(PATH, [spi.AddColumn(field)]).schema.field("more").metadata is None
    again = lake.catalog.alter_table(PATH, [spi.AddColumn(field)])
    assert again.schema.names == ["id", "more"]
    with pytest.raises(spi.IncompatibleTable, match="is there with type int64, not string"):
        lake.catalog.alter_table(PATH, [spi.AddColumn(pa.field("more", pa.string()))])


def test_properties_and_comment_are_kept(tmp_path: Path) -> None:
    table = spi.TableDescriptor(SCHEMA, properties={"owner": "me"}, comment="told")
    catalog = kit.ManifestCatalog(TextTable, tmp_path)
    for info in (catalog.create_table(PATH, table), catalog.load_table(PATH)):
        assert (info.descriptor.properties, info.descriptor.comment) == ({"owner": "me"}, "told")


def test_an_alteration_that_loses_is_tried_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    append, lost = ManifestLog.append, list(range(5))

    def loses(self: ManifestLog, manifest: Manifest) -> Manifest:
        if lost:
            lost.pop()
            raise spi.Conflict("another writer was first")
        return append(self, manifest)

    monkeypatch.setattr(ManifestLog, "append", loses)
    change = spi.AddColumn(pa.field("more", pa.int64()))
    assert lake.catalog.alter_table(PATH, [change]).schema.names == ["id", "more"]
    lost += range(1000)
    with pytest.raises(spi.Conflict):
        lake.catalog.alter_table(PATH, [spi.AddColumn(pa.field("other", pa.int64()))])
    assert len(lost) == 900


def test_an_alteration_that_fails_is_not_tried_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = []

    def fails(*_: Any) -> None:
        failed.append(1)
        raise OSError("no space")

    monkeypatch.setattr(ManifestLog, "append", fails)
    with pytest.raises(OSError, match="no space"):
        lake.catalog.alter_table(PATH, [spi.AddColumn(pa.field("more", pa.int64()))])
    assert failed == [1]


def test_an_alteration_keeps_what_another_one_did_meanwhile(lake: Lake) -> None:
    lake.info = lake.catalog.alter_table(PATH, [spi.AddColumn(pa.field("more", pa.int64()))])
    lake.round(0, 1)
    altered = lake.catalog.alter_table(PATH, [spi.AddColumn(pa.field("other", pa.int64()))])
    assert altered.schema.names == ["id", "more", "other"]


def test_an_alteration_is_finished_and_one_that_changes_nothing_is_none(lake: Lake) -> None:
    """The next writer has nothing to do, and a reader of versions sees no commit that was none."""
    change = spi.AddColumn(pa.field("more", pa.int64()))
    lake.catalog.alter_table(PATH, [change])
    head, finished = lake.table.manifests().head()
    assert (head.number, head.kind, finished) == (1, "alter", True)
    assert lake.catalog.alter_table(PATH, [change]).schema.names == ["id", "more"]
    assert lake.table.manifests().head()[0] == head
    lake.catalog.alter_table(PATH, [spi.SetProperty("acme.more", "new", None)])
    assert lake.catalog.load_table(PATH).descriptor.properties["acme.more"] == "new"


@pytest.mark.parametrize("name", ["notes.txt", "part.text", "other/"])
def test_a_folder_of_somebody_elses_becomes_no_table(tmp_path: Path, name: str) -> None:
    place = tmp_path / "db" / "t"
    (place / name).parent.mkdir(parents=True)
    (place / name).mkdir() if name.endswith("/") else (place / name).write_text("theirs")
    with pytest.raises(spi.IncompatibleTable, match=rf"the folder is not empty(.|\n)*{name.rstrip('/')}"):
        Lake(tmp_path)
    assert [path.name for path in place.iterdir()] == [name.rstrip("/")]


def test_an_empty_folder_becomes_a_table_and_so_does_one_with_our_own(tmp_path: Path) -> None:
    (tmp_path / "db" / "t" / "_text").mkdir(parents=True)
    assert Lake(tmp_path).read() == []


def test_a_file_in_a_tables_place(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "t").write_text("theirs")
    with pytest.raises(spi.IncompatibleTable, match="a file lies in the table's place"):
        Lake(tmp_path)
    (tmp_path / "file").write_text("theirs")
    with pytest.raises(spi.ConfigError, match="creating the table was refused"):
        Lake(tmp_path / "file")
    with pytest.raises(spi.ConfigError, match="creating the table was refused"):
        Lake(tmp_path / "file" / "below")


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Any) -> list[str]:
        raise PermissionError(13, "Permission denied", "here")

    monkeypatch.setattr(local_store.os, "listdir", fails)
    with pytest.raises(spi.StorageError, match=r"(?i)permission denied"):
        Lake(tmp_path)
    (tmp_path / "db" / "t").mkdir(parents=True)
    with pytest.raises(spi.StorageError, match=r"(?i)permission denied"):
        Lake(tmp_path)


def test_a_table_that_somebody_makes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their table is the table, and nothing of ours stays."""
    catalog_ = kit.ManifestCatalog(TextTable, tmp_path)
    create = local_store.create_exclusively

    def later(path: Path, data: bytes) -> None:
        if path.name == "table.json":
            monkeypatch.setattr(local_store, "create_exclusively", create)
            catalog_.create_table(PATH, spi.TableDescriptor(SCHEMA))
        create(path, data)

    monkeypatch.setattr(local_store, "create_exclusively", later)
    info = catalog_.create_table(PATH, spi.TableDescriptor(SCHEMA))
    names = {path.name for path in (tmp_path / "db" / "t" / "_text").iterdir()}
    assert names == {"table.json", info.table_uuid}
    assert Lake(tmp_path).read() == []


def test_a_creation_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = local_store.create_exclusively

    def fails(path: Path, data: bytes) -> None:
        if path.name == "table.json":
            raise OSError("no space")
        create(path, data)

    monkeypatch.setattr(local_store, "create_exclusively", fails)
    with pytest.raises(OSError, match="no space"):
        Lake(tmp_path)


def test_a_damaged_table_is_not_made_anew(lake: Lake) -> None:
    (lake.table.location / "_text" / "table.json").write_bytes(b"damaged")
    before = sorted(lake.table.location.rglob("*"))
    with pytest.raises(spi.CorruptTable):
        lake.catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))
    with pytest.raises(spi.CorruptTable):
        lake.catalog.drop_table(PATH)
    assert sorted(lake.table.location.rglob("*")) == before


def test_only_a_table_is_dropped(lake: Lake, tmp_path: Path) -> None:
    theirs = lake.catalog.warehouse / "db" / "notes"
    theirs.mkdir()
    with pytest.raises(spi.TableNotFound):
        lake.catalog.drop_table(spi.TablePath("db", "notes"))
    assert theirs.is_dir()
    (lake.table.location / "inside").mkdir()
    Lake(tmp_path / "b").table.location.rename(lake.table.location / "inside" / "t")
    with pytest.raises(spi.IncompatibleTable, match="another table is inside"):
        lake.catalog.drop_table(PATH)
    (lake.catalog.warehouse / "db" / "link").symlink_to(lake.table.location)
    with pytest.raises(spi.OutsideTable):
        lake.catalog.drop_table(spi.TablePath("db", "link"))
    assert lake.read() == []


def test_a_table_that_is_gone_when_it_is_dropped(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = local_store.LocalFolder.remove_folder

    def twice(self: Any, name: str) -> None:
        remove(self, name)
        remove(self, name)

    monkeypatch.setattr(local_store.LocalFolder, "remove_folder", twice)
    with pytest.raises(spi.TableNotFound, match="there is no such table"):
        lake.catalog.drop_table(PATH)


@pytest.mark.parametrize("error", [OSError("busy"), spi.OutsideTable("a link")])
def test_a_drop_that_fails_is_told(lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr(local_store.LocalFolder, "remove_folder", fails)
    with pytest.raises(type(error)):
        lake.catalog.drop_table(PATH)


def test_names_that_are_no_tables_are_not_listed(lake: Lake) -> None:
    for name in ("a.b", "white space"):
        lake.table.location.with_name(name).mkdir()
        (lake.table.location.with_name(name) / "_text").mkdir()
        (lake.table.location.with_name(name) / "_text" / "table.json").write_text("")
    lake.table.location.with_name("notes").mkdir()
    (lake.catalog.warehouse / "empty").mkdir()  # type: ignore[operator]
    assert lake.catalog.list_tables() == [PATH]
    assert lake.catalog.list_tables("db") == [PATH]
    assert lake.catalog.list_tables("empty") == []


def test_a_missing_table_is_told_with_its_name_and_what_to_do(lake: Lake) -> None:
    missing = spi.TablePath("db", "missing")
    for look in (
        lambda: lake.catalog.load_table(missing),
        lambda: lake.catalog.alter_table(missing, [spi.AddColumn(pa.field("a", pa.int64()))]),
        lambda: lake.catalog.drop_table(missing),
    ):
        with pytest.raises(spi.TableNotFound, match=r"no table db\.missing(.|\n)*laketier status"):
            look()


def test_a_format_that_keeps_transforms_gets_them(tmp_path: Path) -> None:
    """Each of its files says that its partition is more than values of columns, so that an older laketier, which would
    take it for these, refuses the table."""
    transformed = spi.TableDescriptor(SCHEMA, (spi.PartitionField.parse("bucket(4, id)"),))
    catalog = kit.ManifestCatalog(TextTable, tmp_path)
    assert catalog.create_table(PATH, transformed).descriptor.partition_by == transformed.partition_by
    table = TextTable(tmp_path / "db" / "t")
    file = spi.StagedFile("a", rows=1, bytes=2, partition=(("bucket(4, id)", "3"),))
    assert table.entry(table.open(), file).transformed


def test_an_alteration_is_decided_anew(lake: Lake) -> None:
    """Also one that was done before, in a table that was made again since."""
    change = [spi.SetProperty("acme.more", "new", None)]
    for _ in range(2):
        assert lake.catalog.alter_table(PATH, change).descriptor.properties["acme.more"] == "new"
        lake.catalog.drop_table(PATH)
        lake.catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))


def test_what_somebody_does_not_find_is_not_missed(tmp_path: Path) -> None:
    local_store.LocalStore(tmp_path).remove_below("nothing")
    before = local_store.LocalStore(tmp_path).now()
    assert abs(before - spi.host_time()) < 60_000
    assert not list(tmp_path.iterdir())


def test_a_damaged_table_with_rows_is_told_as_damaged(lake: Lake) -> None:
    """And not as a folder that somebody else put files into."""
    lake.round(0, 1)
    (lake.table.location / "_text" / "table.json").write_bytes(b"damaged")
    with pytest.raises(spi.CorruptTable):
        lake.catalog.create_table(PATH, spi.TableDescriptor(SCHEMA))


def test_a_column_that_old_rows_can_not_have_is_refused(lake: Lake) -> None:
    for field in (pa.field("more", pa.int64(), nullable=False), pa.field("id", pa.string())):
        with pytest.raises((spi.IncompatibleTable, spi.UnsupportedType)):
            lake.catalog.alter_table(PATH, [spi.AddColumn(field)])
    with pytest.raises(spi.IncompatibleTable, match="can't be added as not null"):
        lake.catalog.alter_table(PATH, [spi.AddColumn(pa.field("more", pa.int64(), nullable=False))])
    assert lake.table.manifests().head()[0].number == 0
