"""The embedded catalog reads a metadata file once, and again when it is another one."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.serializers import FromByteStream
from sqlalchemy import Dialect
from sqlalchemy.sql.compiler import SQLCompiler

from laketier.registry import configure, open_lake
from laketier.spi import ConfigError, CorruptTable, LaketierError, ScanRequest, StorageError, TableDescriptor, TablePath
from laketier_iceberg import connection
from laketier_iceberg.embedded import EmbeddedCatalog
from laketier_iceberg.moved import refuse_moved


def _parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    real = FromByteStream.table_metadata

    def counted(*arguments, **named):
        calls.append(1)
        return real(*arguments, **named)

    monkeypatch.setattr(FromByteStream, "table_metadata", staticmethod(counted))
    return calls


def test_a_metadata_file_is_parsed_once(events, monkeypatch) -> None:
    events.round(events.token(0), events.batch(0, 2))
    calls = _parsed(monkeypatch)
    seen = {events.table().metadata_location for _ in range(3)}
    assert len(seen) == 1
    assert len(calls) == 1
    events.round(events.token(1), events.batch(2, 3))
    assert events.table().metadata_location not in seen
    assert events.ids() == [0, 1, 2]


def test_a_damaged_metadata_file_is_noticed(events) -> None:
    events.round(events.token(0), events.batch(0, 2))
    newest = Path(events.table().metadata_location.removeprefix("file://"))
    text = newest.read_text()
    newest.write_text(text[: len(text) // 2])
    with pytest.raises(LaketierError):
        events.table()
    newest.write_text(text)
    assert events.ids() == [0, 1]
    newest.unlink()
    with pytest.raises(LaketierError):
        events.table()


def test_a_catalog_that_somebody_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LOCK_SECONDS", 0.1)
    keys = {"lake.format": "iceberg", "lake.warehouse": str(tmp_path), "lake.table": "db.t"}
    catalog = open_lake(configure(keys, environment={})).storage.catalog()
    made = TableDescriptor(pa.schema([("id", pa.int64())]))
    catalog.create_table(TablePath("db", "t"), made)
    with closing(sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for ask in (
            lambda: catalog.load_table(TablePath("db", "t")),
            lambda: catalog.create_table(TablePath("db", "u"), made),
            catalog.list_tables,
        ):
            with pytest.raises(StorageError, match="did not answer, because database is locked"):
                ask()
    assert catalog.list_tables() == [TablePath("db", "t")]


def test_a_damaged_catalog_file_is_named(events) -> None:
    events.round(events.token(0), events.batch(0, 2))
    file = Path(events.storage._settings.database)
    whole = file.read_bytes()
    with closing(sqlite3.connect(file)) as connection:
        ((root,),) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND tbl_name = 'iceberg_tables'"
        )
        ((size,),) = connection.execute("PRAGMA page_size")
    for data, error, says in (
        (
            whole[: size * (root - 1)] + b"\xff" * size + whole[size * root :],
            CorruptTable,
            r"catalog\.db: the catalog file is damaged",
        ),
        (whole[: len(whole) // 2], ConfigError, r"malformed\. Restore it from a backup"),
        (b"x" * 5000, ConfigError, r"not a database\. Restore it from a backup"),
    ):
        file.unlink()  # a file of the same name and count of changes would be read from SQLite's cache
        file.write_bytes(data)
        with pytest.raises(error, match=says):
            events.storage.catalog().load_table(events.info.path)
    file.write_bytes(whole)
    assert events.ids() == [0, 1]


def test_a_copy_of_a_warehouse_is_not_read_from_its_former_place(events) -> None:
    """Its metadata has absolute paths. A table that is registered from elsewhere is read from there, and so is a
    warehouse by another name of it."""
    events.round(events.token(0), events.batch(0, 2))
    here = Path(events.storage._settings.warehouse)
    copy, link = here.with_name("copy"), here.with_name("link")
    shutil.copytree(here, copy)
    link.symlink_to(here)

    def ids(warehouse: Path) -> list[int]:
        keys = {"lake.format": "iceberg", "lake.warehouse": str(warehouse), "lake.table": str(events.info.path)}
        storage = open_lake(configure(keys, environment={})).storage
        source = storage.source(storage.catalog().load_table(events.info.path))
        plan = source.plan(ScanRequest(columns=("id",)))
        rows = [batch for split in plan.splits for batch in source.read(split, plan.schema)]
        return sorted(pa.Table.from_batches(rows)["id"].to_pylist())

    with pytest.raises(CorruptTable, match="names files of another place"):
        ids(copy)
    assert ids(here) == ids(link) == [0, 1]
    shutil.rmtree(copy / "db")
    assert ids(copy) == [0, 1], "only the one that it names is there"


def test_a_copy_of_a_warehouse_is_known_by_a_uri_that_escapes_letters(tmp_path: Path) -> None:
    """As other tools register a table."""
    there, here = (tmp_path / name / "db" / "t" / "metadata" / "0.metadata.json" for name in ("a b", "copy"))
    for file in (there, here):
        file.parent.mkdir(parents=True)
        file.touch()
    with pytest.raises(CorruptTable, match="names files of another place"):
        refuse_moved(str(tmp_path / "copy"), TablePath("db", "t"), there.as_uri())


def test_asking_for_a_version_lets_go_of_no_lock(events) -> None:
    """Locks of a file are those of a process: whoever opens and closes the catalog's file besides SQLite gives up the
    locks that SQLite holds in other threads, and another process writes into the middle of their transaction."""
    events.round(events.token(0), events.batch(0, 2))
    database = str(events.storage._settings.database)
    catalog = events.storage.catalog()
    path = events.info.path
    knocks = (
        "import sqlite3, sys\n"
        "other = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)\n"
        "try:\n"
        "    other.execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError as error:\n"
        "    print(error)\n"
        "else:\n"
        "    print('it may write')\n"
    )

    def knocking() -> str:
        return subprocess.run(
            [sys.executable, "-c", knocks, database], capture_output=True, text=True, check=True
        ).stdout.strip()

    with closing(sqlite3.connect(database, isolation_level=None)) as ours:
        ours.execute("BEGIN IMMEDIATE")
        assert knocking() == "database is locked"
        version = catalog.table_version(path)
        assert version
        assert catalog.table_version(path, version) == version
        assert knocking() == "database is locked"
        ours.execute("ROLLBACK")
    assert knocking() == "it may write"


def test_a_namespace_is_there_where_pyiceberg_says_so(tmp_path: Path) -> None:
    """By its own properties, by a table in it, and by what is below it; signs that SQL reads as any other are none."""
    catalog = EmbeddedCatalog("laketier", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    for made in ("own", "a_b.below", "a!b.below", "with.table"):
        catalog.create_namespace(made)
    catalog.create_table("with.table.t", pa.schema([("id", pa.int64())]))
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as database, database:
        database.execute("delete from iceberg_namespace_properties where namespace = 'with.table'")
        database.execute("insert into iceberg_namespace_properties values ('another', 'others', 'k', 'v')")
    asked = "own", "ow", "own.below", "a_b", "axb", "a!b", "a%b", "a_b.below", "with", "with.table", "with.t", "others"
    found = [name for name in asked if catalog.namespace_exists(name)]
    assert found == ["own", "a_b", "a!b", "a_b.below", "with", "with.table"]
    assert found == [name for name in asked if SqlCatalog.namespace_exists(catalog, name)]
    with pytest.raises(NoSuchNamespaceError):
        catalog.namespace_exists(())
    catalog.close()


def _made(warehouse: Path) -> EmbeddedCatalog:
    warehouse.mkdir()
    return EmbeddedCatalog("laketier", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))


def _life(catalog: EmbeddedCatalog) -> list[int]:
    """What a first round asks a catalog for."""
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    warehouse = catalog.properties["warehouse"]
    table.append(pa.table({"id": [len(warehouse)]}))
    return catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()


def test_the_catalogs_of_a_process_compile_each_statement_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a service does that has tables in many warehouses. Each is answered from its own."""
    first = _made(tmp_path / "a")
    assert _life(first) == [len(str(tmp_path / "a"))]
    compiled: list[object] = []
    real = SQLCompiler.__init__

    def counted(self: SQLCompiler, dialect: Dialect, statement: object, *rest: Any, **named: Any) -> None:
        compiled.append(statement)
        real(self, dialect, statement, *rest, **named)

    monkeypatch.setattr(SQLCompiler, "__init__", counted)
    second = _made(tmp_path / "another")
    assert _life(second) == [len(str(tmp_path / "another"))]
    monkeypatch.undo()
    # What SQLAlchemy inserts of its own objects has a cache of its own, and a warehouse is made once.
    texts = [str(each) for each in compiled if each is not None]
    assert [text for text in texts if "INSERT INTO iceberg_namespace_properties" not in text] == []
    assert first.load_table("db.t").metadata.table_uuid != second.load_table("db.t").metadata.table_uuid
    first.close()
    second.close()


def test_each_connection_to_a_catalog_syncs_the_end_of_its_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that make the catalog's tables, too: a power cut would bring their journal back."""
    connections: list[sqlite3.Connection] = []
    real = sqlite3.connect

    def kept(*of: Any, **named: Any) -> sqlite3.Connection:
        connections.append(real(*of, **named))
        return connections[-1]

    monkeypatch.setattr(sqlite3.dbapi2, "connect", kept)
    catalog = _made(tmp_path / "a")
    assert connections
    assert {each.execute("PRAGMA synchronous").fetchone() for each in connections} == {(3,)}
    catalog.close()


def test_what_the_suite_warms_up_starts_no_thread(tmp_path: Path) -> None:
    """It is forked from then on, and no fork has the threads of who forked it."""
    code = (
        "import os, sys, pathlib, laketier_iceberg.durable_io, laketier_iceberg.embedded\n"
        "from laketier_iceberg.harness import IcebergHarness\n"
        "before = os.listdir('/proc/self/task')\n"
        "IcebergHarness().warm_up(pathlib.Path(sys.argv[1]))\n"
        "print(before == os.listdir('/proc/self/task'))\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert run.stdout == "True\n", run.stderr
