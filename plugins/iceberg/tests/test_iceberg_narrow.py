"""Each handler of an error takes that error alone. Any other one is a bug, of ours or of a library: it is not passed
over, and not told as damage, a setting or a race."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyiceberg.conversions
import pyiceberg.schema
import pyiceberg.utils.properties
import pytest

from laketier.spi import AddColumn, ScanRequest, TableDescriptor, TablePath
from laketier_iceberg import (
    checkup,
    clock,
    connection,
    durable_io,
    embedded,
    filters,
    neighbours,
    plain,
    pointer,
    projection,
    reader,
    removal,
    resolution,
    source,
    splits,
    table_properties,
    types,
    unread,
)
from laketier_iceberg.connection import CatalogSettings
from laketier_iceberg.files import Files
from laketier_iceberg.transaction import StagedSnapshot

PATH = TablePath("db", "events")


class Bug(Exception):
    """Nobody waits for it."""


def fails(*_: object, **__: object) -> Any:
    raise Bug


class Odd:
    """Whoever makes anything of it fails."""

    __truediv__ = __int__ = __iter__ = fails
    get = open = files = open_input_stream = __getitem__ = fails


ODD: Any = Odd()
NO_SYSTEM = SimpleNamespace(stat=fails, path=None)


def _of_a_file(handle: Any) -> Any:
    return SimpleNamespace(handle=SimpleNamespace(metadata_location=handle))


def _catalog(tmp_path: Path) -> CatalogSettings:
    return CatalogSettings("laketier", str(tmp_path), True)


FIELD = pa.field("c", pa.int32(), metadata={b"PARQUET:field_id": b"1"})
HANDLERS: Mapping[str, tuple[Callable[[pytest.MonkeyPatch], object], Callable[[Path], object]]] = {
    "a file is deleted": (lambda m: m.setattr(Files, "resolve", fails), lambda _: Files({}).delete("/x")),
    "a storage tells the time": (
        lambda m: m.setattr(Files, "resolve", fails),
        lambda _: clock.known_time(SimpleNamespace(io=SimpleNamespace(properties={}), metadata_location="x")),
    ),
    "a handle is weighed": (
        lambda m: m.setattr(pointer, "os", NO_SYSTEM),
        lambda _: pointer.metadata_bytes(_of_a_file("/x")),
    ),
    "a database is asked for a version": (
        lambda m: m.setattr(pointer.sqlite3, "connect", fails),
        lambda folder: pointer.current_pointer(_catalog(folder), PATH),
    ),
    "another catalog is asked for a version": (
        lambda m: m.setattr(pointer, "connect", fails),
        lambda _: pointer.current_pointer(CatalogSettings("x", "/w", False), PATH),
    ),
    "a catalog's file is looked at": (
        lambda m: m.setattr(connection, "os", NO_SYSTEM),
        lambda folder: connection._file_identity(_catalog(folder)),
    ),
    "a warehouse is made": (
        lambda m: m.setattr(connection, "make_directories", fails),
        lambda folder: connection._embedded(_catalog(folder)),
    ),
    "a catalog is opened": (
        lambda m: m.setattr(connection, "_opened", fails),
        lambda folder: connection._embedded(_catalog(folder)),
    ),
    "a folder is looked at": (lambda m: m.setattr(durable_io, "os", NO_SYSTEM), lambda f: durable_io._identity(f)),
    "a metadata file is looked at": (
        lambda m: m.setattr(embedded, "os", NO_SYSTEM),
        lambda _: embedded._identity("/x"),
    ),
    "a moment is told": (lambda _: None, lambda _: checkup._moment(ODD)),
    "the files of a table that is dropped are listed": (lambda _: None, lambda _: removal._found(ODD)),
    "the neighbours of a table that is dropped are looked for": (
        lambda m: (m.setattr(removal, "foreign_metadata", fails), m.setattr(removal, "may_delete", lambda _: True)),
        lambda _: removal._why_files_stay(
            ODD,
            SimpleNamespace(metadata=SimpleNamespace(table_uuid=1), location=lambda: "/x"),
            ODD,
            (),
        ),
    ),
    "a document of somebody's is read": (
        lambda _: None,
        lambda _: neighbours._uuid_in(SimpleNamespace(filesystem=ODD, full=lambda path: path), "x"),
    ),
    "a footer is read": (lambda _: None, lambda _: plain._in_footer("x", ODD)),
    "a value is promoted": (
        lambda m: m.setattr(projection, "promoted", fails),
        lambda _: projection.Projection("x", None, {}, {}).project(pa.array([1]), FIELD),
    ),
    "a data file is opened": (lambda _: None, lambda _: reader._open(ODD, "x")),
    "a default is of the column's type": (
        lambda m: m.setattr(
            resolution, "pa", SimpleNamespace(scalar=fails, ArrowException=pa.ArrowException, Scalar=pa.Scalar)
        ),
        lambda _: resolution.Resolution(ODD, ODD, pa.schema([FIELD]), "x")._value(1, 7),
    ),
    "a name mapping is read": (
        lambda m: m.setattr(resolution, "_check", fails),
        lambda _: resolution.name_mapping(SimpleNamespace(properties={resolution.NAME_MAPPING: "[]"}), "x"),
    ),
    "a partition is shown": (
        lambda _: None,
        lambda _: splits._shown(SimpleNamespace(transform=SimpleNamespace(to_human_string=fails)), None, 1),
    ),
    "a switch is read": (
        lambda m: m.setattr(pyiceberg.utils.properties, "property_as_bool", fails),
        lambda _: table_properties.check_properties({}, "x"),
    ),
    "a codec is looked for": (
        lambda m: m.setattr("pyiceberg.avro.codecs.KNOWN_CODECS", {"deflate": SimpleNamespace(compress=fails)}),
        lambda _: table_properties.manifest_codec({}, "x"),
    ),
    "a number is read": (lambda _: None, lambda _: table_properties._is_whole(ODD, 0)),
    "paths of columns are compared": (
        lambda m: m.setattr(pyiceberg.schema, "index_by_name", fails),
        lambda _: types.to_iceberg(pa.schema([FIELD])),
    ),
    "a table is refused": (
        lambda m: (m.setattr(unread, "document", fails), m.setattr(unread, "metadata_file", lambda *_: "x")),
        lambda _: unread.refusal(ValueError(), ODD, PATH, "w"),
    ),
    "something newer is looked for": (lambda _: None, lambda _: unread._unknown({"schemas": ODD})),
    "a default is understood": (
        lambda m: m.setattr(pyiceberg.conversions, "from_json", fails),
        lambda _: unread._is_known("int", 1),
    ),
    "a float is looked at": (
        lambda m: m.setattr(filters, "struct", SimpleNamespace(pack=fails, unpack=fails, error=struct.error)),
        lambda _: filters._is_float(1.0, "d"),
    ),
    "files are planned": (
        lambda _: None,
        lambda _: source._files(SimpleNamespace(scan=fails), 1, []),
    ),
    "tasks are planned": (
        lambda m: m.setattr(source, "_files", fails),
        lambda _: source._tasks(SimpleNamespace(schema=lambda: ODD), 1, ScanRequest(), ODD),
    ),
}


@pytest.mark.parametrize("doing", HANDLERS)
def test_another_error_stays_what_it_is(doing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, do = HANDLERS[doing]
    prepare(monkeypatch)
    with pytest.raises(Bug):
        do(tmp_path)


def test_the_table_is_named_in_no_error_but_the_refusal_of_a_type() -> None:
    schema = SimpleNamespace(fields=[SimpleNamespace(name="c", field_type=None, field_id=1, required=False)])
    with pytest.raises(Exception, match="c") as refused:
        types.to_arrow(schema, where="db.events")
    assert getattr(refused.value, "where", None) == "db.events"
    with pytest.raises(AttributeError) as other:
        types.to_arrow(SimpleNamespace(fields=[object()]), where="db.events")
    assert not hasattr(other.value, "where")


def test_a_commit_that_failed_by_a_bug_is_not_taken_for_a_lost_race(
    events: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer: Any = events.committer()
    staged, state = events.stage(events.batch(0, 1)), committer.open()
    monkeypatch.setattr(StagedSnapshot, "publish", fails)
    monkeypatch.setattr(committer, "_resolve", lambda *_: pytest.fail("it was taken for a lost race"))
    with pytest.raises(Bug):
        committer.publish(state, [staged], events.watermark(0))


CATALOG: Mapping[str, tuple[str, Callable[[Any], object]]] = {
    "a table is looked for": ("laketier_iceberg.catalog.load", lambda c: c.load_table(PATH)),
    "a table is created": (
        "laketier_iceberg.embedded.EmbeddedCatalog.create_table",
        lambda c: c.create_table(TablePath("db", "new"), TableDescriptor(pa.schema([FIELD]))),
    ),
    "a table is dropped": ("laketier_iceberg.removal.drop", lambda c: c.drop_table(PATH)),
    "tables are listed": ("laketier_iceberg.embedded.EmbeddedCatalog.list_tables", lambda c: c.list_tables("db")),
    "a column is added": (
        "laketier_iceberg.commit.schema_change",
        lambda c: c.alter_table(PATH, [AddColumn(pa.field("more", pa.int32()))]),
    ),
    "a catalog finds a table": (
        "laketier_iceberg.embedded.EmbeddedCatalog.load_table",
        lambda c: c.load_table(PATH),
    ),
}


@pytest.mark.parametrize("doing", CATALOG)
def test_another_error_of_a_catalog_stays_what_it_is(events: Any, monkeypatch: pytest.MonkeyPatch, doing: str) -> None:
    place, do = CATALOG[doing]
    catalog = events.storage.catalog()
    monkeypatch.setattr(place, fails)
    with pytest.raises(Bug):
        do(catalog)
