"""The tables of a warehouse. Driver."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from ducklake_lake.features import FEATURES
from ducklake_lake.library import OWN, Lake, Overtaken, Session, quoted
from ducklake_lake.table import Version, found, load, load_newest, missing, naming_damage
from ducklake_lake.types import check, to_sql
from laketier import spi
from laketier.kit.durable import make_directories
from laketier.kit.looks import is_folder, is_there

# Columns that DuckLake makes up for each table. `read` needs the first.
TAKEN = {"filename", "file_row_number", "rowid", "snapshot_id"}
TRIES = 20
PAUSE, DOUBLED = 0.02, 6
"""Seconds before a second try at most, and how many later pauses may be twice as long: whoever writes has the lock."""


@dataclass(frozen=True)
class Catalog(spi.LakeCatalog):
    """One DuckLake."""

    lake: Lake

    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        for wanted, feature in (
            (descriptor.partition_by, spi.Feature.PARTITIONING),
            (descriptor.buckets, spi.Feature.BUCKETING),
            (descriptor.primary_key, spi.Feature.UPSERT),
        ):
            if wanted:
                spi.require("ducklake", FEATURES, feature)
        schema = pa.schema([pa.field(each.name, each.type, each.nullable) for each in descriptor.schema])
        check_columns(schema)
        columns = ", ".join(column(each) + ("" if each.nullable else " NOT NULL") for each in schema)
        self.lake.make()
        place = self.lake.folder / "data" / path.database / path.table
        if is_there(place) and not is_folder(place):
            raise spi.IncompatibleTable(
                f"DuckLake can't have a table {path}",
                where=str(place),
                why="a file is in the place of its folder",
                fix="Use another name, or move the file.",
            )

        def create(session: Session) -> Version:
            if (there := load(session, path)) is not None:
                return there
            check_name(session, path)
            session.run(f"CREATE SCHEMA IF NOT EXISTS {session.lake}.{quoted(path.database)}")
            session.run(f"CREATE TABLE {session.lake}.{quoted(path.database, path.table)} ({columns})")
            return None

        self._change(create)
        table = self.load_table(path)
        make_directories(Path(table.location))
        return spi.same_table(table, replace(descriptor, schema=schema))

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        version = load_newest(self.lake, path)
        descriptor = spi.TableDescriptor(version.schema)
        table = spi.TableInfo(path, descriptor, version.identity, version.location, snapshot_id=version.number)
        return table.with_handle(version)

    def alter_table(self, path: spi.TablePath, changes: Sequence[spi.SchemaChange]) -> spi.TableInfo:
        name = quoted(path.database, path.table)
        if any(isinstance(each, spi.SetProperty) for each in changes):
            spi.require("ducklake", FEATURES, spi.Feature.SET_PROPERTY)

        def alter(session: Session) -> None:
            version = load(session, path)
            if version is None:
                raise missing(self.lake, path)
            there = version.schema
            table = spi.TableInfo(path, spi.TableDescriptor(there), version.identity, version.location)
            after = spi.reshaped(table, changes)
            check_columns(after)
            for old, new in zip(there, after, strict=True):
                if old.type != new.type:
                    session.run(
                        f"ALTER TABLE {session.lake}.{name} ALTER {quoted(old.name)} SET TYPE {to_sql(new.type)}"
                    )
                if old.name != new.name:
                    session.run(f"ALTER TABLE {session.lake}.{name} RENAME {quoted(old.name)} TO {quoted(new.name)}")
            with_added = there  # a column may be named twice in one call
            for change in changes:
                if isinstance(change, spi.AddColumn):
                    add(session, change.field, with_added)
                    if change.field.name not in with_added.names:
                        with_added = with_added.append(change.field)

        def add(session: Session, field: pa.Field, there: pa.Schema) -> None:
            check_columns(pa.schema([field]))
            if field.name in there.names and there.field(field.name).type == field.type:
                return
            if field.name.lower() in map(str.lower, there.names) or not field.nullable:
                raise spi.IncompatibleTable(
                    f"the column {field.name!r} can't be added",
                    where=str(path),
                    why="it is there with another type, or it allows no nulls",
                    fix="Add a nullable column under another name.",
                )
            session.run(f"ALTER TABLE {session.lake}.{name} ADD COLUMN {column(field)}")

        self._change(alter, path)
        return self.load_table(path)

    def drop_table(self, path: spi.TablePath) -> None:
        def drop(session: Session) -> None:
            version = load(session, path)
            if version is None:
                raise missing(self.lake, path)
            session.run(f"DROP TABLE {session.lake}.{quoted(path.database, path.table)}")
            for own in ("watermarks", "commits"):
                session.run(f"DELETE FROM {session.lake}.{OWN}.{own} WHERE table_uuid = ?", (version.identity,))

        self._change(drop, path)

    def list_tables(self, database: str | None = None) -> list[spi.TablePath]:
        if not is_there(self.lake.file):
            return []
        with naming_damage(self.lake), self.lake.transaction() as session:
            rows = session.run(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ? AND schema_name <> ?",
                (session.lake, OWN),
            )
        names = (row for row in rows if all(map(spi.TablePath.is_name, row)))
        return sorted(path for path in (spi.TablePath(*row) for row in names) if database in (None, path.database))

    def _change(self, change: Callable[[Session], object], path: spi.TablePath | None = None) -> None:
        """Idempotent changes, so they are tried again after somebody else's commit, or once nobody writes any more."""
        for attempt in range(TRIES):
            try:
                with found(self.lake, path), self.lake.transaction() as session:
                    change(session)
                return
            except Overtaken as error:
                refusal = error
                time.sleep(random.uniform(0, PAUSE * 2 ** min(attempt, DOUBLED)))
        raise spi.TableError(
            f"the lake could not be changed in {TRIES} attempts",
            where=str(self.lake.file),
            why=f"others wrote each time: {refusal}",
            fix="Try again when fewer commits are made to the lake.",
        ) from refusal


def check_name(session: Session, path: spi.TablePath) -> None:
    """DuckDB folds case: a name that differs by case only would be that of another table, or of its own ones."""
    rows = session.run(
        "SELECT schema_name FROM duckdb_schemas() WHERE database_name = $1 AND lower(schema_name) = lower($2) "
        "UNION ALL SELECT table_name FROM duckdb_tables() "
        "WHERE database_name = $1 AND lower(schema_name) = lower($2) AND lower(table_name) = lower($3)",
        (session.lake, path.database, path.table),
    )
    for (name,) in rows:
        if name not in (path.database, path.table) or name == OWN:
            raise spi.IncompatibleTable(
                f"DuckLake can't have a table {path}",
                where=str(path),
                why=f"there is {name!r}, and DuckDB folds case",
                fix="Use another name.",
            )


def column(field: pa.Field) -> str:
    return f"{quoted(field.name)} {to_sql(field.type)}"


def check_columns(schema: pa.Schema) -> None:
    """Raise `UnsupportedType` for what DuckLake can't hold exactly."""
    for field in schema:
        check(field)
    names = [name.lower() for name in schema.names]
    for name in names:
        if name in TAKEN or names.count(name) > 1:
            raise spi.UnsupportedType(
                f"DuckLake can't have the column {name!r}",
                why="the name is one of its own, or there are two that differ in case only",
                fix="Rename the column.",
            )
