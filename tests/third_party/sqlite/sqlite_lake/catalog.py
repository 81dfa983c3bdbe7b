"""One database file for a warehouse. It has the tables, what is known of them, and the watermarks."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from laketier import spi
from laketier.kit import durable
from laketier.kit.looks import is_link, is_there
from sqlite_lake.values import check_types

FORMAT = "sqlite"
_FULL = ("add-column", "drop-table", "orphan-collection", "upsert")
_REASON = "a table of SQLite is changed in its place, row by row"
FEATURES = {feature: spi.FULL if feature.value in _FULL else spi.unsupported(_REASON) for feature in spi.Feature}
_SCHEMA = """
CREATE TABLE IF NOT EXISTS laketier_table (
  name TEXT PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, arrow_schema TEXT NOT NULL, primary_key TEXT NOT NULL,
  version INTEGER NOT NULL, claim TEXT);
CREATE TABLE IF NOT EXISTS laketier_watermark (
  uuid TEXT, pipeline TEXT, watermark TEXT NOT NULL, PRIMARY KEY (uuid, pipeline));
CREATE TABLE IF NOT EXISTS laketier_commit (uuid TEXT, commit_id TEXT, version INTEGER, PRIMARY KEY (uuid, commit_id));
"""


def quoted(name: str) -> str:
    """A name in a statement."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Database:
    """The file, opened anew for each look."""

    path: Path

    @contextmanager
    def connected(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction. Readers see one moment; writers wait for each other."""
        try:
            with closing(sqlite3.connect(self.path, timeout=60, isolation_level=None)) as connection:
                # FULL would leave the journal's own name to chance: after a power cut it would undo the commit.
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield connection
                connection.execute("COMMIT")
                if write:
                    # Who found what a killed process had committed answers for it, and its journal may come back.
                    durable.fsync_directory(self.path.parent)
        except sqlite3.Error as error:
            # Neither a conflict nor a refusal: in a commit it means that nobody knows whether it landed, which is true.
            is_damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
            kind = spi.CorruptTable if is_damaged else spi.StorageError
            raise kind("the database failed", where=str(self.path), why=str(error)) from error

    def prepare(self) -> None:
        """Make the file and its own tables."""
        durable.make_directories(self.path.parent)
        with self.connected(write=True) as sql:
            for statement in _SCHEMA.split(";"):
                sql.execute(statement)


@dataclass(frozen=True)
class State(spi.TableState):
    """The table in one transaction. ``watermarks`` and ``commits`` are small: one row a pipeline, one a commit."""

    info: spi.TableInfo
    watermarks: dict[str, str]
    database: Database

    @property
    def table_uuid(self) -> str:
        return self.info.table_uuid

    @property
    def schema_fingerprint(self) -> str:
        return self.info.schema_fingerprint

    @property
    def spec_id(self) -> int:
        return 0

    @property
    def snapshot_id(self) -> int | None:
        return self.info.snapshot_id

    def watermark(self, pipeline: str) -> spi.Watermark | None:
        text = self.watermarks.get(pipeline)
        return None if text is None else spi.Watermark.from_json(text)

    def pipelines(self) -> Sequence[str]:
        return sorted(self.watermarks)

    def landed(self, commit_id: str) -> bool:
        with self.database.connected() as sql:
            query = "SELECT 1 FROM laketier_commit WHERE uuid = ? AND commit_id = ? AND version <= ?"
            return sql.execute(query, (self.table_uuid, commit_id, self.snapshot_id)).fetchone() is not None


def look_up(sql: sqlite3.Connection, warehouse: Path, path: spi.TablePath) -> spi.TableInfo:
    """The table, in this transaction."""
    try:
        row = sql.execute("SELECT * FROM laketier_table WHERE name = ?", (str(path),)).fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        row = None
    if row is None:
        raise _missing(warehouse, path)
    _, table_uuid, schema, key, version, _ = row
    try:
        arrow = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema)))
        descriptor = spi.TableDescriptor(arrow, primary_key=tuple(json.loads(key)))
    except (ValueError, TypeError, OSError, pa.ArrowException) as error:
        raise spi.CorruptTable("a table's description can't be read", where=str(path), why=str(error)) from error
    return spi.TableInfo(path, descriptor, table_uuid, str(warehouse / "staged" / table_uuid), version)


@dataclass(frozen=True)
class Catalog(spi.LakeCatalog):
    warehouse: Path

    @property
    def database(self) -> Database:
        return Database(self.warehouse / "lake.sqlite")

    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        wanted = _checked(descriptor)
        self.database.prepare()
        with self.database.connected(write=True) as sql:
            try:
                return spi.same_table(look_up(sql, self.warehouse, path), wanted)
            except spi.TableNotFound:
                table_uuid = uuid.uuid4().hex
            _check_name(sql, path)
            durable.make_directories(self.warehouse / "staged" / table_uuid)
            row = (str(path), table_uuid, _text(wanted.schema), json.dumps(wanted.primary_key), 0)
            sql.execute("INSERT INTO laketier_table VALUES (?, ?, ?, ?, ?, NULL)", row)
            key = wanted.primary_key or ("_version", "_row")
            columns = [*map(quoted, wanted.schema.names), "_version", "_row", "_file"]
            # Columns without a type: SQLite then keeps each value as it is given.
            keyed = f"PRIMARY KEY ({', '.join(map(quoted, key))})"
            sql.execute(f"CREATE TABLE {quoted(str(path))} ({', '.join(columns)}, {keyed})")
        return self.load_table(path)

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        with self._reading(path) as sql:
            return look_up(sql, self.warehouse, path)

    def state(self, path: spi.TablePath) -> State:
        with self._reading(path) as sql:
            info = look_up(sql, self.warehouse, path)
            query = "SELECT pipeline, watermark FROM laketier_watermark WHERE uuid = ?"
            return State(info, dict(sql.execute(query, (info.table_uuid,))), self.database)

    @contextmanager
    def _reading(self, path: spi.TablePath) -> Iterator[sqlite3.Connection]:
        if not is_there(self.database.path):
            raise _missing(self.warehouse, path)
        with self.database.connected() as sql:
            yield sql

    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        self.load_table(path)
        with self.database.connected(write=True) as sql:
            found = look_up(sql, self.warehouse, path)
            schema = found.schema
            for change in changes:
                if not isinstance(change, spi.AddColumn):
                    needed = {
                        spi.WidenColumn: spi.Feature.WIDEN_TYPE,
                        spi.RenameColumn: spi.Feature.RENAME_COLUMN,
                        spi.SetProperty: spi.Feature.SET_PROPERTY,
                    }
                    spi.require(FORMAT, FEATURES, needed[type(change)])
                    continue
                field = pa.field(change.field.name, change.field.type, change.field.nullable)
                check_columns(pa.schema([field]))
                schema = _with(schema, field, where=str(path))
            # Refuses names that differ by case only.
            spi.reshaped(found, changes)
            for field in list(schema)[len(found.schema) :]:
                sql.execute(f"ALTER TABLE {quoted(str(path))} ADD COLUMN {quoted(field.name)}")
            if len(schema) > len(found.schema):
                # Rows of a round that has not ended would become those of this version.
                sql.execute(f"DELETE FROM {quoted(str(path))} WHERE _version > ?", (found.snapshot_id,))
                change_of = "UPDATE laketier_table SET arrow_schema = ?, version = version + 1 WHERE name = ?"
                sql.execute(change_of, (_text(schema), str(path)))
        return self.load_table(path)

    def drop_table(self, path: spi.TablePath) -> None:
        self.load_table(path)
        with self.database.connected(write=True) as sql:
            found = look_up(sql, self.warehouse, path)
            sql.execute(f"DROP TABLE {quoted(str(path))}")
            for table in ("laketier_table", "laketier_watermark", "laketier_commit"):
                sql.execute(f"DELETE FROM {table} WHERE uuid = ?", (found.table_uuid,))
        if not is_link(found.location):
            shutil.rmtree(found.location, ignore_errors=True)

    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        if not is_there(self.database.path):
            return []
        with self.database.connected() as sql:
            there = "SELECT 1 FROM sqlite_master WHERE name = 'laketier_table'"
            known = sql.execute(there).fetchone() and sql.execute("SELECT name FROM laketier_table")
            names = [spi.TablePath.parse(name) for (name,) in known or ()]
        return sorted(path for path in names if database in (None, path.database))


def _missing(warehouse: Path, path: spi.TablePath) -> spi.TableNotFound:
    fix = "Check lake.warehouse and the name; `laketier status` lists the tables."
    return spi.TableNotFound(f"there is no table {path}", where=str(warehouse), fix=fix)


def _check_name(sql: sqlite3.Connection, path: spi.TablePath) -> None:
    """SQLite folds the case of ASCII, and keeps a prefix for itself."""
    rows = sql.execute("SELECT name FROM sqlite_master WHERE name = ? COLLATE NOCASE", (str(path),)).fetchall()
    if rows or str(path).lower().startswith("sqlite_"):
        why = f"there is {rows[0][0]}, and SQLite folds case" if rows else "SQLite keeps names with sqlite_ for itself"
        raise spi.IncompatibleTable(f"SQLite can't have a table {path}", why=why, fix="Use another name.")


def check_columns(schema: pa.Schema) -> None:
    """Raise `UnsupportedType` for a column that a new or an old table can't get."""
    check_types(schema)
    for name in schema.names:
        if name.lower() in ("_version", "_row", "_file", "rowid"):
            raise spi.UnsupportedType(f"the column name {name!r} is taken", fix="Use another name.")


def _checked(descriptor: spi.TableDescriptor) -> spi.TableDescriptor:
    if any(each.transform is not spi.Transform.IDENTITY for each in descriptor.partition_by):
        spi.require(FORMAT, FEATURES, spi.Feature.PARTITION_TRANSFORMS)
    if descriptor.partition_by:
        spi.require(FORMAT, FEATURES, spi.Feature.PARTITIONING)
    if descriptor.buckets is not None:
        spi.require(FORMAT, FEATURES, spi.Feature.BUCKETING)
    check_columns(descriptor.schema)
    plain = pa.schema([pa.field(each.name, each.type, each.nullable) for each in descriptor.schema])
    return replace(descriptor, schema=plain)


def _with(schema: pa.Schema, field: pa.Field, *, where: str) -> pa.Schema:
    if field.name not in schema.names:
        if not field.nullable:
            raise spi.IncompatibleTable(f"column {field.name!r} can't be added as not null", where=where)
        return schema.append(field)
    if not schema.field(field.name).type.equals(field.type):
        there = schema.field(field.name).type
        raise spi.IncompatibleTable(f"column {field.name!r} is there as {there}, not {field.type}", where=where)
    return schema


def _text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode("ascii")
