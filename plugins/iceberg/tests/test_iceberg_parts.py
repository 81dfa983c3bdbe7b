"""Small parts, one by one: what damage is, who landed, what a column's files are worth, and errors of a database."""

from __future__ import annotations

import datetime as dt
import json
import struct
import sys
import zlib
from collections.abc import Callable
from decimal import Decimal
from gzip import BadGzipFile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as it
from pyiceberg.exceptions import CommitFailedException, UnauthorizedError, ValidationError
from requests.exceptions import ConnectTimeout
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError, ProgrammingError

from laketier.spi import (
    Conflict,
    CorruptTable,
    FeatureNotSupported,
    IncompatibleData,
    LaketierError,
    PartitionField,
    StorageError,
    TablePath,
    Transform,
    UnknownOutcome,
    UnsupportedType,
)
from laketier_iceberg import committer as committing
from laketier_iceberg import files as storing
from laketier_iceberg import unread
from laketier_iceberg.checkup import _moment
from laketier_iceberg.committer import IcebergState
from laketier_iceberg.connection import CatalogSettings, _file_identity, _opened, connect, naming_catalog_errors
from laketier_iceberg.files import Files
from laketier_iceberg.live_files import _number
from laketier_iceberg.manifests import naming_damaged_manifests
from laketier_iceberg.metrics import leaves
from laketier_iceberg.partitions import PartitionPlan, from_json
from laketier_iceberg.pointer import metadata_bytes
from laketier_iceberg.reader import _names
from laketier_iceberg.stored import document, metadata_file, metadata_files
from laketier_iceberg.types import to_arrow, to_iceberg
from laketier_iceberg.unread import _unknown, is_unreadable, refusal

PATH = TablePath("db", "events")


@pytest.mark.parametrize(
    ("error", "unreadable"),
    [
        *((kind("x"), True) for kind in (KeyError, TypeError, ValueError, EOFError, RecursionError, ValidationError)),
        *((kind("x"), True) for kind in (FileNotFoundError, BadGzipFile, ZeroDivisionError, NotImplementedError)),
        *((kind("x"), False) for kind in (PermissionError, OSError, RuntimeError, MemoryError)),
    ],
    ids=repr,
)
def test_what_damage_looks_like(error: Exception, unreadable: bool) -> None:
    assert is_unreadable(error) is unreadable


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Unsupported field type:\n foo", FeatureNotSupported),
        ("Type not recognized: foo", FeatureNotSupported),
        ("no such\n key", CorruptTable),
    ],
)
def test_of_a_server_s_table_the_error_tells_what_is_the_matter(text: str, kind: type[LaketierError]) -> None:
    server: Any = object()
    told = refusal(ValueError(text), server, PATH, "w")
    assert type(told) is kind
    assert "db.events in w" in str(told)
    assert "\n" not in str(told)


@pytest.mark.parametrize("error", [PermissionError("x"), ValueError("x"), EOFError("x"), RecursionError("x")])
def test_what_can_not_be_read_once_more_tells_nothing_new(
    events: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(unread, "document", lambda *_: raises(error))
    told = refusal(KeyError("location"), connect(events.storage._settings), PATH, "w")
    assert type(told) is CorruptTable
    assert "KeyError: 'location'" in str(told)


def test_memory_that_ends_is_no_damage(events: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "document", lambda *_: raises(MemoryError()))
    with pytest.raises(MemoryError):
        refusal(KeyError("location"), connect(events.storage._settings), PATH, "w")


def raises(error: Exception) -> None:
    raise error


def test_of_two_columns_of_one_name_in_a_file_nobody_knows_which_is_meant() -> None:
    """The Parquet reader knows columns by names alone. One that nobody asks for does no harm."""
    there = [pa.field("a", pa.int64()), pa.field("b", pa.int64()), pa.field("a", pa.string())]
    assert _names(there, {1}, "f.parquet") == ["b"]
    with pytest.raises(CorruptTable, match="two columns with the name 'a'") as told:
        _names(there, {0, 1}, "f.parquet")
    assert (told.value.where, bool(told.value.fix)) == ("f.parquet", True)


INT = {"id": 1, "name": "a", "type": "int", "required": False}


def schemas(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"format-version": 2, "schemas": [{"fields": [INT]}, {"fields": [INT, *fields]}]}


@pytest.mark.parametrize(
    ("stored", "kind", "what"),
    [
        (schemas(), None, ""),
        ({"format-version": 1, "schema": {"fields": [INT]}}, None, ""),
        ({"format-version": 1, "schema": {"fields": [{**INT, "type": "odd"}]}}, UnsupportedType, "column 'a'"),
        ({"format-version": 4}, FeatureNotSupported, "tables of version 4"),
        ({"format-version": 3, **schemas()}, None, ""),
        ({"format-version": "4", **schemas()}, None, ""),
        ({}, None, ""),
        ({"schemas": 7}, None, ""),
        ({"schemas": [{}]}, None, ""),
        ({"schemas": [7]}, None, ""),
        (schemas({"name": "b", "type": "odd"}), UnsupportedType, "column 'b' is of Iceberg's type odd"),
        (
            schemas({"name": "b", "type": {"type": "struct", "fields": [{"name": "c", "type": "odd"}]}}),
            UnsupportedType,
            "'b.c'",
        ),
        (schemas({"name": "b", "type": {"type": "list", "element": "odd"}}), UnsupportedType, "'b.element'"),
        (schemas({"name": "b", "type": {"type": "map", "key": "odd", "value": "int"}}), UnsupportedType, "'b.key'"),
        (
            schemas({"name": "b", "type": {"type": "map", "key": "int", "value": {"type": "list", "element": "odd"}}}),
            UnsupportedType,
            "'b.value.element'",
        ),
        (schemas({"name": "b", "type": "int", "initial-default": 7}), None, ""),
        (schemas({"name": "b", "type": "int", "initial-default": None}), None, ""),
        (
            schemas({"name": "b", "type": {"type": "list", "element": "int"}, "initial-default": []}),
            FeatureNotSupported,
            "initial default",
        ),
        (schemas({"name": "b", "type": "uuid", "initial-default": "x"}), FeatureNotSupported, "initial default"),
        ({**schemas(), "partition-specs": [{"fields": [{"name": "p", "source-ids": [1]}]}]}, None, ""),
        ({**schemas(), "partition-specs": [{"fields": [{"name": "p"}]}]}, None, ""),
        (
            {
                **schemas(),
                "partition-specs": [
                    {"fields": [{"name": "o", "source-id": 1}]},
                    {"fields": [{"name": "p", "source-ids": [1, 2]}]},
                ],
            },
            FeatureNotSupported,
            "several columns",
        ),
        ({**schemas(), "partition-specs": [{}]}, None, ""),
    ],
)
def test_what_is_newer_than_pyiceberg_is_told_by_name(stored: Any, kind: type[LaketierError] | None, what: str) -> None:
    told = _unknown(stored)
    assert (None if told is None else type(told)) is kind
    assert what in str(told or "")


def test_leaves_below_lists_and_maps_repeat() -> None:
    inner = pa.struct([("c", pa.int32())])
    schema = pa.schema(
        [
            ("a", pa.struct([("b", pa.list_(inner)), ("n", pa.float64())])),
            ("m", pa.map_(pa.string(), inner)),
            ("z", pa.int64()),
        ]
    )
    found = [(leaf.name, leaf.repeated, str(leaf.type)) for leaf in leaves(to_arrow(to_iceberg(schema)))]
    assert found == [
        ("a.b.element.c", True, "int32"),
        ("a.n", False, "double"),
        ("m.key", True, "string"),
        ("m.value.c", True, "int32"),
        ("z", False, "int64"),
    ]


AT = dt.datetime(2024, 2, 29, 13, 5)
DAY = AT.date()


@pytest.mark.parametrize(
    ("transform", "kind", "value", "array", "text", "internal"),
    [
        (Transform.YEAR, pa.timestamp("us"), AT, pa.array([54], pa.int32()), "54", 54),
        (Transform.MONTH, pa.timestamp("us"), AT, pa.array([649], pa.int32()), "649", 649),
        (Transform.DAY, pa.timestamp("us"), AT, pa.array([DAY], pa.date32()), "2024-02-29", 19_782),
        (Transform.DAY, pa.date32(), DAY, pa.array([DAY], pa.date32()), "2024-02-29", 19_782),
        (Transform.HOUR, pa.timestamp("us"), AT, pa.array([474_781], pa.int32()), "474781", 474_781),
        (Transform.IDENTITY, pa.date32(), DAY, pa.array([DAY], pa.date32()), "2024-02-29", 19_782),
        (Transform.IDENTITY, pa.binary(), b"\xff", pa.array([b"\xff"]), "/w==", "/w=="),
        (
            Transform.IDENTITY,
            pa.time64("us"),
            dt.time(1, 2, 3, 4),
            pa.array([dt.time(1, 2, 3, 4)]),
            "01:02:03.000004",
            3_723_000_004,
        ),
        (
            Transform.IDENTITY,
            pa.decimal128(9, 2),
            Decimal("1.50"),
            pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
            "1.50",
            "1.50",
        ),
        (Transform.IDENTITY, pa.bool_(), True, pa.array([True]), "true", True),
    ],
)
def test_partition_values(
    transform: Transform, kind: pa.DataType, value: Any, array: pa.Array, text: str, internal: Any
) -> None:
    plan = PartitionPlan((("p", PartitionField("c", transform)),))
    [found] = plan.keys(pa.table({"c": pa.array([value], kind)}))
    assert found.type == array.type
    assert found.equals(array)
    values = found.to_pylist()
    assert plan.text(values) == (("p", text),)
    assert json.loads(plan.to_json(values)) == [internal]
    assert plan.text([None]) == (("p", None),)
    assert plan.bucket(values) is None


def test_instants_are_of_utc_and_a_bucket_is_told() -> None:
    plan = PartitionPlan((("p", PartitionField("c", Transform.IDENTITY)), ("b", PartitionField("c"))), "b")
    zoned = AT.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))
    naive = (zoned.astimezone(dt.UTC).replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    assert json.loads(plan.to_json([zoned, 3])) == [naive, 3]
    assert (plan.bucket([zoned, 3]), plan.bucket([7, None])) == (3, None)
    with pytest.raises(TypeError, match="no partition value: list"):
        plan.to_json([[], 3])


@pytest.mark.parametrize("moment", [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23)])
def test_hours_of_python_s_years_are_partitions_and_no_others(moment: dt.datetime) -> None:
    plan = PartitionPlan((("p", PartitionField("c", Transform.HOUR)),))
    edge = pa.scalar(moment, pa.timestamp("us")).cast(pa.int64()).as_py()
    further = edge - 1 if moment.year == 1 else edge + 3_600_000_000
    assert plan.keys(pa.table({"c": pa.array([edge, None], pa.timestamp("us"))}))
    with pytest.raises(IncompatibleData, match="can't be a partition value"):
        plan.keys(pa.table({"c": pa.array([edge, further], pa.timestamp("us"))}))


def test_values_of_partitions_come_back_as_iceberg_has_them() -> None:
    types = [it.DecimalType(9, 2), it.BinaryType(), it.FixedType(1), it.DateType(), it.StringType()]
    assert from_json('["1.50", "/w==", "/w==", 7, null]', types) == [Decimal("1.50"), b"\xff", b"\xff", 7, None]
    with pytest.raises(ValueError, match="1 partition values for 5 fields"):
        from_json("[1]", types)


@pytest.mark.parametrize(("text", "number"), [(None, 0), ("", 0), ("x", 0), ("-1", 0), ("7", 7), ("1.0", 0)])
def test_a_result_without_a_number_is_looked_for_everywhere(text: str | None, number: int) -> None:
    assert _number(text) == number


def test_a_moment_is_told_however_far_it_is() -> None:
    assert _moment(1_500) == "1970-01-01T00:00:01+00:00"
    assert _moment(2**62) == f"{2**62} ms"


class Staged:
    def __init__(self) -> None:
        self.snapshot = SimpleNamespace(snapshot_id=99)
        self.forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({}, UnknownOutcome),
        ({"table_uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7"}, Conflict),
        ({"current_snapshot_id": None}, Conflict),
        ({"current_schema_id": 7}, Conflict),
        ({"default_spec_id": 7}, Conflict),
    ],
)
def test_a_commit_that_failed_is_believed_where_something_moved(
    events: Any, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], error: type[LaketierError]
) -> None:
    """By a server, which may answer so to a commit that it was asked twice for."""
    events.round(events.token(0), events.batch(0, 1))
    committer: Any = events.committer()
    state = committer.open()
    now = SimpleNamespace(metadata=state.table.metadata.model_copy(update=change))
    monkeypatch.setattr(committing, "load", lambda *_: now)
    monkeypatch.setattr(committing, "is_local", lambda _: False)
    staged = Staged()
    with pytest.raises(error):
        committer._resolve(state, staged, CommitFailedException("no"))
    assert staged.forgotten == (error is Conflict)
    staged.snapshot.snapshot_id = state.snapshot_id
    now.metadata = state.table.metadata
    committer._resolve(state, staged, CommitFailedException("no"))
    assert staged.forgotten == (error is Conflict)
    assert isinstance(state, IcebergState)


def failure(kind: type[DatabaseError], text: str) -> DatabaseError:
    return kind("select", {}, Exception(text))


SECRETS = {"password": "hunter22"}


@pytest.mark.parametrize(
    ("make", "embedded", "told"),
    [
        (lambda: failure(OperationalError, "locked hunter22"), True, StorageError),
        (lambda: failure(OperationalError, "locked hunter22"), False, StorageError),
        (lambda: failure(DatabaseError, "malformed"), True, CorruptTable),
        (lambda: failure(DatabaseError, "malformed"), False, DatabaseError),
        (lambda: failure(ProgrammingError, "permission denied for hunter22"), False, StorageError),
        (lambda: failure(IntegrityError, "twice"), True, IntegrityError),
        (lambda: ValueError("x"), True, ValueError),
    ],
)
def test_what_a_database_says_of_itself(make: Callable[[], Exception], embedded: bool, told: type[Exception]) -> None:
    from laketier.spi import Passthrough

    settings = CatalogSettings("mine", "/w", embedded, Passthrough(SECRETS))
    with pytest.raises(told) as caught, naming_catalog_errors(settings):
        raise make()
    assert type(caught.value) is told
    if isinstance(caught.value, LaketierError):
        assert caught.value.where == ("/w/catalog.db" if embedded else None)
        assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("error", [ConnectTimeout("no route, Bearer hunter22"), UnauthorizedError("not hunter22")])
def test_what_a_server_says_is_a_sentence(error: Exception) -> None:
    from laketier.spi import Passthrough

    uri = "http://user:hunter22@catalog.example:8181"
    settings = CatalogSettings("mine", "/w", False, Passthrough({"uri": uri, "token": "hunter22"}))
    with pytest.raises(StorageError) as caught, naming_catalog_errors(settings):
        raise error
    assert "hunter22" not in str(caught.value)
    assert caught.value.where == "http://user:***@catalog.example:8181"
    assert type(error).__name__ in str(caught.value)


def test_without_a_database_s_library_no_error_is_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "sqlalchemy.exc")
    with pytest.raises(ValueError, match="x"), naming_catalog_errors(CatalogSettings("mine", "/w", True)):
        raise ValueError("x")
    with pytest.raises(ValueError, match="x"):
        _opened(lambda: raising([ValueError("x")], "made"))


def raising(errors: list[Exception], made: Any) -> Any:
    if errors:
        raise errors.pop(0)
    return made


@pytest.mark.parametrize(
    ("errors", "left"),
    [
        ([], None),
        ([failure(OperationalError, "table x already exists")], None),
        ([failure(IntegrityError, "twice"), failure(OperationalError, "table x already exists")], None),
        ([failure(OperationalError, "table x already exists")] * 3, 0),
        ([failure(OperationalError, "no answer")] * 3, 2),
        ([RuntimeError("x")] * 3, 2),
    ],
)
def test_a_catalog_is_opened_again_where_another_process_made_a_table_of_it(
    errors: list[Exception], left: int | None
) -> None:
    given: Any = list(errors)
    if left is None:
        assert _opened(lambda: raising(given, "made")) == "made"
    else:
        with pytest.raises(type(errors[0])):
            _opened(lambda: raising(given, "made"))
        assert len(given) == left


def test_only_the_embedded_catalog_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").touch()
    found = (tmp_path / "catalog.db").stat()
    assert _file_identity(CatalogSettings("x", str(tmp_path), True)) == (found.st_dev, found.st_ino)
    assert _file_identity(CatalogSettings("x", str(tmp_path), False)) is None
    assert _file_identity(CatalogSettings("x", str(tmp_path / "none"), True)) is None


def test_files_are_flushed_by_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(storing, "fsync_file", lambda path: flushed.append(f"file {path}"))
    monkeypatch.setattr(storing, "fsync_directory", lambda path: flushed.append(f"folder {path}"))
    files, path = Files({}), tmp_path / "new" / "a"
    with files.create(f"file://{path}") as stream:
        stream.write(b"x")
    files.make_durable(str(path))
    files.make_names_durable(f"file:{path.parent}")
    assert flushed == [f"file {path}", f"folder {path.parent}"]
    with pytest.raises(FileExistsError):
        files.create(str(path))
    assert files.open(str(path)).read() == b"x"
    assert [file.path for file in files.folder(f"{path.parent}/").files()] == ["a"]
    files.delete(str(path))
    files.delete(str(path))
    assert not path.exists()


def test_a_file_that_can_not_be_deleted_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Files({}).delete(str(tmp_path))
    assert "could not be deleted, orphan collection will find it" in caplog.text


def test_tables_as_a_catalog_s_database_names_them(events: Any, make: Any) -> None:
    make(name="other")
    catalog = events.table().catalog
    named = metadata_files(catalog)
    assert named is not None
    assert sorted(named) == [("db", "events"), ("db", "other")]
    for name, location in named.items():
        assert metadata_file(catalog, name) == location
        assert document(catalog, location)["table-uuid"] == str(catalog.load_table(name).metadata.table_uuid)
    assert [metadata_file(catalog, name) for name in (("db", "none"), ("none", "events"), ("events",))] == [None] * 3
    server: Any = object()
    assert (metadata_files(server), metadata_file(server, ("db", "events"))) == (None, None)
    path = Path(named["db", "events"].removeprefix("file://"))
    path.write_text("[]")
    with pytest.raises(ValueError, match="no JSON object"):
        document(catalog, named["db", "events"])


def test_a_handle_s_file_may_be_named_by_a_uri(events: Any) -> None:
    path = Path(events.table().metadata_location.removeprefix("file://"))
    for location, size in ((f"file://{path}", 10 * path.stat().st_size), ("s3://b/x", None), ("file:///none", None)):
        handle = SimpleNamespace(metadata_location=location)
        assert metadata_bytes(events.info.with_handle(handle)) == size


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("x"), ValueError("x"), MemoryError("x")])
def test_an_error_that_no_manifest_explains_is_raised_as_it_is(events: Any, error: Exception) -> None:
    events.round(events.token(0), events.batch(0, 1))
    table = events.table()
    with pytest.raises(type(error)), naming_damaged_manifests(table, table.snapshots(), "db.events"):
        raise error
    for path in Path(events.info.location, "metadata").glob("*-m0.avro"):
        path.write_bytes(path.read_bytes()[:20])
    damaged = pytest.raises(CorruptTable, match="a manifest can't be read")
    with damaged, naming_damaged_manifests(table, table.snapshots(), "db.events"):
        raise error
    with pytest.raises(UnsupportedType), naming_damaged_manifests(table, table.snapshots(), "db.events"):
        raise UnsupportedType("x")


@pytest.mark.parametrize("error", [zlib.error("too far back"), EOFError("x"), struct.error("x")])
def test_bytes_that_were_no_manifest_once_are_damage(events: Any, error: Exception) -> None:
    """pyiceberg reads on behind the end of a manifest's bytes, and finds what the memory holds there."""
    events.round(events.token(0), events.batch(0, 1))
    table = events.table()
    told = pytest.raises(CorruptTable, match=r"db\.events: .*Another look found none damaged")
    with told, naming_damaged_manifests(table, table.snapshots(), "db.events"):
        raise error
