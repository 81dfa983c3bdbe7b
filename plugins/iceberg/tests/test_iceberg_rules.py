"""What a table may be made with, what a change gives up on, and what a drop leaves, case by case."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError
from pyiceberg.manifest import DataFileContent

from laketier.spi import (
    AddColumn,
    BucketSpec,
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    IncompatibleTable,
    LaketierError,
    PartitionField,
    RenameColumn,
    ScanRequest,
    TableDescriptor,
    TablePath,
    Transform,
    UnsupportedType,
)
from laketier_iceberg.alteration import _ALTER_ATTEMPTS, _reshape
from laketier_iceberg.descriptions import properties_of
from laketier_iceberg.embedded import _identity
from laketier_iceberg.files import Files
from laketier_iceberg.foreign_deletes import add_deletes
from laketier_iceberg.neighbours import _uuid_in
from laketier_iceberg.plain import _in_footer
from laketier_iceberg.removal import _found, _remove_empty_folders
from laketier_iceberg.resolution import Resolution
from laketier_iceberg.spec import fields_of

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us")), ("other", pa.timestamp("us")), ("s", pa.string())])
PATH = TablePath("db", "events")


@pytest.mark.parametrize(
    ("properties", "error", "says"),
    [
        ({"laketier.watermark.p": "x"}, IncompatibleTable, r"\['laketier.watermark.p'\] are laketier's own"),
        ({"laketier": "x", "acme.laketier.": "y"}, None, ""),
        ({"format-version": "1"}, FeatureNotSupported, "format-version 1"),
        ({"format-version": "3"}, FeatureNotSupported, "format-version 3"),
        ({"format-version": "2"}, None, ""),
    ],
)
def test_properties_that_a_table_may_be_made_with(
    properties: dict[str, str], error: type[LaketierError] | None, says: str
) -> None:
    wanted = TableDescriptor(SCHEMA, properties=properties, comment="a note")
    if error is not None:
        with pytest.raises(error, match=says):
            properties_of(wanted)
        return
    made = properties_of(wanted)
    assert made.items() >= {**properties, "format-version": "2", "comment": "a note"}.items()
    assert "comment" not in properties_of(TableDescriptor(SCHEMA))


def by(column: str, transform: Transform, width: int | None = None) -> PartitionField:
    return PartitionField(column, transform, width)


@pytest.mark.parametrize(
    ("fields", "twice"),
    [
        ((by("at", Transform.YEAR), by("at", Transform.DAY)), True),
        ((by("at", Transform.HOUR), by("at", Transform.MONTH)), True),
        ((by("at", Transform.DAY), by("other", Transform.DAY)), False),
        ((by("id", Transform.BUCKET, 4), by("id", Transform.BUCKET, 8)), True),
        ((by("id", Transform.BUCKET, 4), by("s", Transform.BUCKET, 4)), False),
        ((by("id", Transform.BUCKET, 4), by("id", Transform.TRUNCATE, 4)), False),
        ((by("s", Transform.IDENTITY), by("s", Transform.TRUNCATE, 1)), False),
    ],
)
def test_a_column_is_partitioned_once_by_a_kind_of_transform(fields: tuple[PartitionField, ...], twice: bool) -> None:
    if twice:
        with pytest.raises(ConfigError, match="is partitioned twice by"):
            fields_of(TableDescriptor(SCHEMA, fields))
    else:
        assert fields_of(TableDescriptor(SCHEMA, fields)) == fields


def test_the_buckets_of_a_table_are_its_last_partition() -> None:
    buckets = BucketSpec(8, ("id",), "iceberg")
    with pytest.raises(ConfigError, match="is partitioned twice by"):
        fields_of(TableDescriptor(SCHEMA, (by("id", Transform.BUCKET, 4),), buckets))
    assert fields_of(TableDescriptor(SCHEMA, (by("at", Transform.DAY),), buckets)) == (
        by("at", Transform.DAY),
        by("id", Transform.BUCKET, 8),
    )


def test_a_change_gives_up_where_others_always_come_first(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[object] = []

    def lost(table: Any) -> Any:
        tries.append(table)
        raise CommitFailedException("another came first")

    monkeypatch.setattr("laketier_iceberg.commit.schema_change", lost)
    with pytest.raises(CommitFailedException):
        events.storage.catalog().alter_table(PATH, [AddColumn(pa.field("more", pa.int32()))])
    assert len(tries) == _ALTER_ATTEMPTS
    assert len({id(table) for table in tries}) == _ALTER_ATTEMPTS, "each try is on the table as it is then"


@pytest.mark.parametrize("error", [NamespaceAlreadyExistsError("db"), RuntimeError("unique constraint")], ids=repr)
@pytest.mark.parametrize("is_there", [True, False])
def test_another_process_makes_the_namespace_first(
    make: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, is_there: bool
) -> None:
    catalog = make(name="first").storage.catalog()
    answers = [False, is_there]

    def lost(*_: object) -> None:
        raise error

    monkeypatch.setattr(
        "laketier_iceberg.embedded.EmbeddedCatalog.namespace_exists", lambda *_: not answers or answers.pop(0)
    )
    monkeypatch.setattr("laketier_iceberg.embedded.EmbeddedCatalog.create_namespace", lost)
    if is_there:
        catalog.create_table(PATH, TableDescriptor(SCHEMA))
        assert answers == []
    else:
        with pytest.raises(type(error)):
            catalog.create_table(PATH, TableDescriptor(SCHEMA))


def test_folders_that_are_empty_go_and_others_stay(tmp_path: Path) -> None:
    root = tmp_path / "t"
    for path in ("a/b/c", "d", "e/f"):
        (root / path).mkdir(parents=True)
    (root / "e" / "kept").touch()
    _remove_empty_folders(str(root))
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*")) == ["e", "e/kept"]
    (root / "e" / "kept").unlink()
    _remove_empty_folders(str(root))
    assert not root.exists()


def test_files_that_can_not_be_listed_are_unknown() -> None:
    def refused() -> Any:
        raise PermissionError("no")

    folder: Any = SimpleNamespace(files=refused)
    assert _found(folder) == ([], "it is unknown whether all are the table's: no")
    found: Any = SimpleNamespace(files=lambda: [SimpleNamespace(path="a"), SimpleNamespace(path="b")])
    assert _found(found) == (["a", "b"], None)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(pa.int32(), "x"), (pa.int32(), 2**40), (pa.int32(), b"x"), (pa.date32(), 2**60), (pa.string(), 7)],
    ids=repr,
)
def test_a_value_of_another_type_is_damage(kind: pa.DataType, value: Any) -> None:
    wanted = pa.schema([pa.field("c", kind, metadata={b"PARQUET:field_id": b"1"})])
    schema: Any = SimpleNamespace(find_column_name=lambda _: "c")
    with pytest.raises(CorruptTable, match="which files without column 'c' have there"):
        Resolution(None, schema, wanted, "db.events")._value(1, value)  # type: ignore[arg-type]
    assert Resolution(None, schema, wanted, "db.events")._value(1, None).as_py() is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "columns"),
    [(OSError("x"), None), (pa.ArrowInvalid("x"), None), (KeyError("x"), frozenset()), (TypeError("x"), frozenset())],
    ids=repr,
)
def test_a_file_whose_footer_can_not_be_read_is_not_plain(error: Exception, columns: Any) -> None:
    def refused(_: str) -> Any:
        raise error

    files: Any = SimpleNamespace(open=refused)
    assert _in_footer("/x.parquet", files) == columns


@pytest.mark.parametrize("rows", [0, 3])
def test_names_of_files_are_flushed_where_there_are_some(
    events: Any, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(Files, "make_names_durable", lambda _, folder: flushed.append(folder))
    events.stage(*([events.batch(0, rows)] if rows else []))
    assert flushed == ([f"{events.info.location}/data"] if rows else [])


def test_what_a_snapshot_says_of_its_round(events: Any) -> None:
    """All of it: what the history tells, and what Iceberg's own sink of Spark looks for."""
    committer = events.committer("commit-1")
    state = committer.open()
    for epoch, token in ((7, events.watermark(7)), (None, None)):
        committer.publish(state, [events.stage(events.batch(0, 1))], token)
        summary = events.table().current_snapshot().summary.additional_properties
        own = {key: value for key, value in summary.items() if key.startswith(("laketier.", "spark."))}
        expected = {"laketier.commit-id": "commit-1"}
        if epoch is not None:
            expected |= {
                "laketier.pipeline": "p",
                "laketier.epoch": "7",
                "spark.sql.streaming.queryId": "run",
                "spark.sql.streaming.epochId": "7",
            }
        assert own == expected
        state = committer.open()


def test_deletes_name_rows_of_later_batches(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laketier.kit.parquet_reader._BATCH_ROWS", 2)
    events.round(events.token(0), events.batch(0, 9))
    [split] = events.storage.source(events.info).plan(ScanRequest()).splits
    path = split.payload.path
    rows = {"file_path": [path] * 3, "pos": [1, 4, 8]}
    add_deletes(events.table(), DataFileContent.POSITION_DELETES, rows)
    assert events.read()["id"].to_pylist() == [0, 2, 3, 5, 6, 7] == events.ids()


@pytest.mark.parametrize("kind", [pa.decimal256(40, 2), pa.decimal128(38, -1)], ids=str)
def test_a_column_is_not_widened_to_what_iceberg_does_not_have(kind: pa.DataType) -> None:
    old, new = pa.field("c", pa.decimal128(9, 2)), pa.field("c", kind)
    asked: list[object] = []
    update: Any = SimpleNamespace(update_column=lambda *_, **__: asked.append(1))
    with pytest.raises(UnsupportedType, match="can't be stored as it is"):
        _reshape(update, old, new)
    assert not asked


def test_only_a_text_document_tells_whose_it_is(tmp_path: Path) -> None:
    """A writer that was killed leaves half a document."""
    names = {}
    for name, text in {
        "torn": '{"table-uuid": "u',
        "empty": "",
        "list": "[]",
        "number": "7",
        "binary": "\x00\xff",
        "none": "{}",
        "table": '{"table-uuid": "u"}',
        "view": '{"view-uuid": "v"}',
        "deep": "[" * 100_000,
    }.items():
        (tmp_path / name).write_text(text, encoding="latin-1")
        names[name] = _uuid_in(Files({}).folder(str(tmp_path)), name)
    assert {name: uuid for name, uuid in names.items() if uuid is not None} == {"table": "u", "view": "v"}
    packed = gzip.compress(b'{"table-uuid": "g"}')
    for name, data in (("whole", packed), ("half", packed[:12]), ("odd", packed[:10] + b"\xff" * 20)):
        (tmp_path / name).write_bytes(data)
        assert _uuid_in(Files({}).folder(str(tmp_path)), name) == ("g" if name == "whole" else None)


def test_a_local_file_is_known_by_its_path_and_by_its_uri(tmp_path: Path) -> None:
    file = tmp_path / "a b%.json"
    file.write_text("{}")
    found = file.stat()
    rest = (found.st_ino, found.st_size, found.st_mtime_ns)
    for location in (file.as_uri(), str(file)):
        assert _identity(location) == (location, *rest)
    for location in (f"s3://bucket{file}", str(tmp_path / "none"), "\0"):
        assert _identity(location) is None


def test_a_file_whose_column_had_another_name_is_not_plain(events: Any) -> None:
    """A reader that goes by names would find another column, or none."""
    events.round(events.token(0), events.batch(0, 3))
    events.storage.catalog().alter_table(PATH, [RenameColumn("s", "t")])
    fresh = events.storage.catalog().load_table(PATH)
    [split] = events.storage.source(fresh).plan(ScanRequest()).splits
    assert split.plain_parquet is None
