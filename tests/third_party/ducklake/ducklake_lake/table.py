"""A table as it is at one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from ducklake_lake.library import OWN, Lake, NoLake, Session, quoted
from ducklake_lake.types import to_arrow
from laketier import spi

DAMAGED = ("database disk image is malformed", "file is not a database", "malformed database schema")


@dataclass(frozen=True)
class Version:
    """What one transaction saw."""

    identity: str
    number: int
    schema: pa.Schema
    location: str
    watermarks: Mapping[str, str]


def look_up(session: Session, path: spi.TablePath, number: int) -> tuple[str, int, str] | None:
    """The identity, the library's own number, and the folder of a table. None if there is no such table or snapshot."""
    rows = session.run(
        f"""SELECT t.table_uuid, t.table_id, s.path, t.path
            FROM {session.catalog("ducklake_table")} t JOIN {session.catalog("ducklake_schema")} s USING (schema_id)
            JOIN {session.catalog("ducklake_snapshot")} n ON n.snapshot_id = $1
            WHERE s.schema_name = $2 AND t.table_name = $3
            AND t.begin_snapshot <= $1 AND coalesce(t.end_snapshot > $1, true)
            AND s.begin_snapshot <= $1 AND coalesce(s.end_snapshot > $1, true)""",
        (number, path.database, path.table),
    )
    for identity, table_id, schema_folder, folder in rows:
        return identity, table_id, f"{session.folder}/data/{schema_folder}{folder}".rstrip("/")
    return None


def load(session: Session, path: spi.TablePath, number: int | None = None) -> Version | None:
    """A table at a snapshot, the newest without ``number``. None if there is no such table or snapshot."""
    number = session.snapshot() if number is None else number
    if (there := look_up(session, path, number)) is None:
        return None
    identity, table_id, location = there
    nulls = dict(
        session.run(
            f"""SELECT column_name, nulls_allowed FROM {session.catalog("ducklake_column")}
                WHERE table_id = $1 AND parent_column IS NULL
                AND begin_snapshot <= $2 AND coalesce(end_snapshot > $2, true)""",
            (table_id, number),
        )
    )
    columns = session.cursor.sql(f"FROM {at(session, path, number)} LIMIT 0")
    schema = pa.schema(
        [
            pa.field(name, to_arrow(duck), bool(nulls[name]))
            for name, duck in zip(columns.columns, columns.types, strict=True)
        ]
    )
    marks = session.run(
        f"SELECT pipeline, watermark FROM {session.lake}.{OWN}.watermarks WHERE table_uuid = ?", (identity,)
    )
    return Version(identity, number, schema, location, dict(marks))


def load_newest(lake: Lake, path: spi.TablePath) -> Version:
    """Raises `TableNotFound`."""
    with found(lake, path), lake.transaction() as session:
        version = load(session, path)
        if version is None:
            raise missing(lake, path)
        return version


def at(session: Session, path: spi.TablePath, number: int) -> str:
    """A table at a snapshot, in SQL."""
    return f"{session.lake}.{quoted(path.database, path.table)} AT (VERSION => {number:d})"


@contextmanager
def found(lake: Lake, path: spi.TablePath) -> Iterator[None]:
    """Turns the library's errors into those that laketier knows."""
    with naming_damage(lake):
        try:
            yield
        except NoLake as error:
            raise missing(lake, path) from error


@contextmanager
def naming_damage(lake: Lake) -> Iterator[None]:
    """Tells of a catalog that is none. SQLite says so in words, and its error has no kind once it passed DuckDB."""
    try:
        yield
    except duckdb.Error as error:
        if isinstance(error, duckdb.CatalogException) or any(words in str(error) for words in DAMAGED):
            why = str(error).splitlines()[0]
            raise spi.CorruptTable("the lake's catalog can't be read", where=str(lake.file), why=why) from error
        raise


def missing(lake: Lake, path: spi.TablePath) -> spi.TableNotFound:
    return spi.TableNotFound(
        f"there is no table {path}",
        where=str(lake.file),
        fix="Check lake.warehouse and the name; `laketier status` lists the tables.",
    )
