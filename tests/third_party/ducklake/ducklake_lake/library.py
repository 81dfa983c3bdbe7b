"""DuckLake's own library, the extension of DuckDB: opened for one use, with all retries switched off."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_ducklake
import duckdb_extension_sqlite_scanner

from laketier.kit.durable import fsync_directory, fsync_file, make_directories
from laketier.kit.looks import is_there

# SQLite's log, whose readers hold up no writer, and which is durable with each commit.
OPTIONS = "META_JOURNAL_MODE 'WAL', META_BUSY_TIMEOUT 60000"
OWN = "__laketier"


class NoLake(Exception):
    """There is no catalog in the folder."""


class Overtaken(Exception):
    """Another commit came first, and nothing of this one landed."""


@dataclass(frozen=True)
class Lake:
    """A DuckLake: a catalog in SQLite, and a folder for its files."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "lake.sqlite"

    @contextmanager
    def open(self) -> Iterator[Session]:
        """The lake, outside of a transaction. Raises `NoLake`."""
        if not is_there(self.file):
            raise NoLake(f"there is no {self.file}")
        with _engine(os.getpid()).session(self.file) as session:
            yield session

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """One transaction: all of it lands, or nothing. Raises `Overtaken` if it is certain that nothing landed."""
        with self.open() as session:
            session.run("BEGIN")
            try:
                yield session
            except BaseException:
                session.run("ROLLBACK")
                raise
            try:
                session.run("COMMIT")
            except duckdb.TransactionException as error:
                if _nothing_landed(str(error)):
                    raise Overtaken(str(error).splitlines()[-1]) from error
                raise

    def make(self) -> None:
        """Make the lake if there is none. It gets its name when it is complete, so of two makers one wins."""
        if is_there(self.file):
            return
        make_directories(self.folder / "data")
        draft = Lake(self.folder / f".{uuid.uuid4().hex}")
        make_directories(draft.folder)
        engine = _engine(os.getpid())
        name = engine.attach(draft.file, f"DATA_PATH {literal(f'{self.folder}/data/')}")
        try:
            with engine.connection.cursor() as cursor:
                session = Session(cursor, name, self.folder)
                session.run("BEGIN")
                session.run(f"CREATE SCHEMA {name}.{OWN}")
                session.run(
                    f"CREATE TABLE {name}.{OWN}.watermarks(table_uuid VARCHAR, pipeline VARCHAR, watermark VARCHAR)"
                )
                session.run(f"CREATE TABLE {name}.{OWN}.commits(table_uuid VARCHAR, commit_id VARCHAR)")
                session.run("COMMIT")
        finally:
            engine.detach(name)
        fsync_file(draft.file)
        with suppress(FileExistsError):
            os.link(draft.file, self.file)
        fsync_directory(self.folder)
        for left in draft.folder.iterdir():
            left.unlink()
        draft.folder.rmdir()


@dataclass(frozen=True)
class Session:
    """SQL on one lake, whose name in SQL is `lake`. ``folder``: where it is now."""

    cursor: duckdb.DuckDBPyConnection
    lake: str
    folder: Path

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.cursor.execute(sql, list(values)).fetchall()

    def catalog(self, table: str) -> str:
        """A table of the catalog, as the specification of DuckLake names it."""
        return f"__ducklake_metadata_{self.lake}.{table}"

    def snapshot(self) -> int:
        """The snapshot that this transaction sees."""
        ((number,),) = self.run(f"FROM {self.lake}.current_snapshot()")
        return int(number)


def quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _nothing_landed(message: str) -> bool:
    """Whether SQLite let another commit go first. Neither of its two answers leaves anything behind."""
    return "database is locked" in message or "UNIQUE constraint failed: ducklake_snapshot" in message


Key = tuple[str, int, int]
"""A path, and the file that is there. The number of a file alone is no name of a lake: a lake that is moved takes its
number along, and the file system gives that of one that is gone to the next new file."""


@dataclass
class _Attached:
    """``held``: a descriptor, for as long as it is attached, so that no other file gets its number. The library opens
    the file anew in each transaction, and would not notice."""

    name: str
    held: int
    users: int = 0


@dataclass
class _Engine:
    """DuckDB in this process. A lake stays attached until another one is used: to attach it takes five times as long as
    to read a table's state. The library looks at the newest snapshot in each transaction."""

    connection: duckdb.DuckDBPyConnection
    attached: dict[Key, _Attached] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def session(self, file: Path) -> Iterator[Session]:
        with self.lock:
            lake = self._of(file)
            lake.users += 1
        try:
            with self.connection.cursor() as cursor:
                yield Session(cursor, lake.name, file.parent)
        finally:
            with self.lock:
                lake.users -= 1

    def attach(self, file: Path, how: str) -> str:
        name = f"lake_{uuid.uuid4().hex}"
        self.connection.execute(f"ATTACH {literal(f'ducklake:sqlite:{file}')} AS {name} ({how}, {OPTIONS})")
        return name

    def detach(self, name: str) -> None:
        self.connection.execute(f"DETACH {name}")

    def _of(self, file: Path) -> _Attached:
        if (there := self.attached.get(_key(file, os.stat(file)))) is not None:
            return there
        self._forget()
        # For its path alone, where the system has that: to close another one ends the locks that this process has.
        held = os.open(file, getattr(os, "O_PATH", os.O_RDONLY))
        try:
            # The catalog names the folder in which it was made. A lake that was moved or copied has its own files.
            here = f"DATA_PATH {literal(f'{file.parent}/data/')}, OVERRIDE_DATA_PATH true"
            lake = _Attached(self.attach(file, f"CREATE_IF_NOT_EXISTS false, {here}"), held)
        except BaseException:
            os.close(held)
            raise
        self.attached[_key(file, os.fstat(held))] = lake
        return lake

    def _forget(self) -> None:
        for key, lake in list(self.attached.items()):
            if not lake.users:
                del self.attached[key]
                self.detach(lake.name)
                os.close(lake.held)


def _key(file: Path, status: os.stat_result) -> Key:
    return str(file), status.st_dev, status.st_ino


@cache
def _engine(process: int) -> _Engine:
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # The signatures of these two files: pip has checked their wheels, and nobody signs the Python beside them.
            # Checking again takes 0.7 s of each process.
            "allow_unsigned_extensions": "true",
            "threads": "1",
        }
    )
    for package, name in (
        (duckdb_extension_sqlite_scanner, "sqlite_scanner"),
        (duckdb_extension_ducklake, "ducklake"),
    ):
        folder = Path(str(package.__file__)).parent / "extensions" / f"v{duckdb.__version__}"
        connection.execute(f"LOAD {literal(f'{folder}/{name}.duckdb_extension')}")
    # No retry: the library would put the same files on top of somebody else's commit.
    connection.execute("SET GLOBAL ducklake_max_retry_count = 0")
    # DuckDB keeps what it read of a file, and of a lake's files it never asks whether they are still the same: this
    # process would see no damage, and after one no repair.
    connection.execute("SET GLOBAL enable_external_file_cache = false")
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return _Engine(connection)
