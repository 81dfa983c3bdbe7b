"""A whole source: the tables of a SQLite database whose ids are AUTOINCREMENT. See docs/authors/sources.md."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from laketier import spi
from laketier.registry import hookimpl

BUCKET = "rows"
TYPES = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string(), "BLOB": pa.binary()}
VALUES = {pa.int64(): int, pa.float64(): float, pa.string(): str, pa.binary(): bytes}


@dataclass(frozen=True)
class Options:
    """Below ``options:`` of a service file."""

    path: str = spi.option("", "The file of the database.")


@dataclass(frozen=True)
class TableOptions:
    """Below ``read:`` of a table."""

    stamp_by: str = spi.option("", "A column that no UPDATE changes, as the time of the INSERT. Without it no stamp.")


@contextmanager
def looked_at(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection for one look, in one transaction. A file that is not there is an error, and no empty database."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=30)) as db:
            db.execute("BEGIN")
            yield db
    except sqlite3.Error as error:
        raise spi.StorageError("the database does not answer", where=str(file), why=str(error)) from error


@dataclass(frozen=True)
class PolledLog(spi.TableLog):
    """An offset is an id. SQLite has one writer at a time, so ids are in the order of commits: in PostgreSQL or MySQL
    they are not, and the highest one is no end of what is final. The database gives the ids: a row that somebody
    inserts by an id of his own, below the highest one that was given, comes behind the reader and is never read."""

    file: Path
    described: spi.LogTable
    stamp_by: str

    @property
    def table(self) -> spi.LogTable:
        return self.described

    def bounds(self) -> dict[str, spi.BucketBounds]:
        with looked_at(self.file) as db:
            return {BUCKET: self._bounds(db)}

    def _bounds(self, db: sqlite3.Connection) -> spi.BucketBounds:
        """The last id that was given is known also where no row is left. The first one is 1, before any was given: a
        reader that begins at an empty table would else find the offsets before it expired."""
        given = db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (self.described.name,)).fetchone()
        end = given[0] + 1 if given else 1
        (first,) = db.execute(f"SELECT min(id) FROM {quoted(self.described.name)}").fetchone()
        if first is not None and not given:
            why = "it has rows, and sqlite_sequence has no id of them: another one would say that nothing came"
            raise spi.StorageError(f"the ids of {self.described.name!r} are not kept", where=str(self.file), why=why)
        return spi.BucketBounds(end if first is None else first, end)

    def stamp(self, position: spi.LogOffsets) -> str | None:
        """Of the last row that was read: another one, where the table was made again or put back from a backup. By one
        column that stays as it is: an UPDATE of that row, or one more column, is no other history."""
        if not self.stamp_by:
            return None
        select = f"SELECT {quoted(self.stamp_by)} FROM {quoted(self.described.name)} WHERE id = ?"
        with looked_at(self.file) as db:
            row = db.execute(select, (position.get(BUCKET, 0) - 1,)).fetchone()
        return None if row is None else hashlib.sha256(repr(row).encode()).hexdigest()

    def plan(self, wanted: spi.LogRange) -> list[spi.LogSplit]:
        start, end = wanted.start.get(BUCKET, 0), wanted.end.get(BUCKET, 0)
        with looked_at(self.file) as db:
            self._check(db, start, end)
        return list(spi.LogSplit(bucket=BUCKET, start=start, end=end).cut(100_000)) if start < end else []

    def read(
        self,
        split: spi.LogSplit,
        *,
        columns: Sequence[str] | None = None,
        on_bad_record: spi.OnBadRecord = spi.fail_on_bad_record,
    ) -> Iterator[pa.RecordBatch]:
        with looked_at(self.file) as db:
            db.text_factory = lambda raw: raw.decode(errors="surrogateescape")  # no UTF-8: a bad record, and no end
            self._check(db, split.start, split.end)  # in the transaction of the read: nothing expires between the two
            rows = self._rows(db, split.start, split.end)
            while block := rows.fetchmany(10_000):
                batch = self._batch(block, on_bad_record)
                yield batch if columns is None else batch.select(list(columns))

    def _batch(self, block: list[tuple[Any, ...]], on_bad_record: spi.OnBadRecord) -> pa.RecordBatch:
        """SQLite stores text in a column of numbers, if it is told to: such a row is a bad record. So is 3.5 in a
        column of integers, of which pyarrow makes 3."""
        schema, good = self.described.schema, []
        kinds = [VALUES[field.type] for field in schema]
        for row in (dict(zip(schema.names, each, strict=True)) for each in block):
            try:
                for (name, value), kind in zip(row.items(), kinds, strict=True):
                    if not isinstance(value, kind | None):
                        raise TypeError(f"{name} is {value!r:.100}")
                pa.RecordBatch.from_pylist([row], schema=schema)
                good.append(row)
            except (pa.ArrowException, TypeError, ValueError) as error:
                on_bad_record(spi.BadRecord(bucket=BUCKET, offset=row["id"], error=str(error), value=None))
        return pa.RecordBatch.from_pylist(good, schema=schema)

    def _rows(self, db: sqlite3.Connection, start: int, end: int) -> sqlite3.Cursor:
        names = ", ".join(map(quoted, self.described.schema.names))
        where = "WHERE id >= ? AND id < ? ORDER BY id"
        return db.execute(f"SELECT {names} FROM {quoted(self.described.name)} {where}", (start, end))

    def _check(self, db: sqlite3.Connection, start: int, end: int) -> None:
        bounds = self._bounds(db)
        if start < min(bounds.earliest, end):
            gone = {BUCKET: [(0, bounds.earliest)]}
            raise spi.OffsetsExpired(f"rows before {bounds.earliest} were deleted", where=str(self.file), gone=gone)
        if end > bounds.latest:
            raise spi.StorageError(f"the table ends at {bounds.latest}, before {end}", where=str(self.file))


class PolledSource(spi.LogSource):
    """One database. Driver."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def list_tables(self) -> list[str]:
        with looked_at(self._file) as db:
            found = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'")
            return sorted(name for (name,) in found)

    def open(self, name: str, options: Any) -> spi.TableLog:
        if name not in self.list_tables():  # exactly: SQLite takes a name in any case
            raise spi.TableNotFound(f"there is no table {name!r} with ids of AUTOINCREMENT", where=str(self._file))
        with looked_at(self._file) as db:
            columns = db.execute("SELECT name, type FROM pragma_table_info(?)", (name,)).fetchall()
        other = [f"{column} {kind}" for column, kind in columns if kind not in TYPES]
        if other or "id" not in dict(columns):
            why = f"it has a column id, and columns of {', '.join(TYPES)} alone: {other or 'no id'}"
            raise spi.UnsupportedType(f"the table {name!r} can't be polled", where=str(self._file), why=why)
        if options.stamp_by not in ("", *dict(columns)):
            why = f"{name!r} has no such column"
            raise spi.ConfigError(f"stamp-by: {options.stamp_by}", where=str(self._file), why=why, fix="Name another.")
        schema = pa.schema([(column, TYPES[kind]) for column, kind in columns])
        return PolledLog(self._file, spi.LogTable(name, name, schema), options.stamp_by)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class PolledPlugin(spi.LogSourcePlugin):
    """``type: polled``."""

    identifier, spi_version, options_type, table_options_type = "polled", 2, Options, TableOptions

    def create_source(self, config: spi.LogSourceConfig) -> PolledSource:
        if not config.options.path:
            raise spi.ConfigError("options.path is missing", where=config.name, fix="Set it to the database's file.")
        return PolledSource(Path(config.options.path))


@hookimpl
def laketier_source() -> spi.LogSourcePlugin:
    return PolledPlugin()
