"""The connection to the state database: transactions, and errors told as `StateError`."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)

from laketier.config.locations import absolute_database
from laketier.service.state.errors import StateError, StateUnavailable
from laketier.spi import ConfigError, host_time
from laketier.spi.redaction import redacted

_BUSY_SECONDS = 30
_READ_ONLY, _NO_TABLE = "25006", "42P01"
"""What PostgreSQL calls errors (SQLSTATE)."""
_NO_HOST = "failed to resolve host"
"""What psycopg says of a name that DNS does not know, or not now."""
_SQLITE_NEEDED = (3, 35, 0)
_FILE = "laketier_file"
"""What a connection to SQLite is known to hold, beside it in the pool."""


class _FileGone(sqlite3.OperationalError):
    """The file of a connection is no longer in its place, and no other one is."""


class Database:
    """An engine whose transactions raise `StateError` alone. After an error it connects again when it is used again."""

    def __init__(self, url: str) -> None:
        """Connects to nothing yet. Raises `ConfigError` for a URL that is none of ours."""
        self.shown, parsed = _parse(url)
        self._password = parsed.password
        self.refuses: StateUnavailable | None = None
        """Why the last transaction that was to change things could not; None if it could. Others may still read."""
        self._engine = _sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgresql(parsed)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is the embedded one."""
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that changes things. SQLite's takes the write lock at its start: one that read first and wrote
        then would fail at once when another wrote in between, without the patience of the busy timeout."""
        try:
            with self._told(), self._engine.connect() as connection, connection.begin():
                yield connection
        except StateUnavailable as error:
            self.refuses = error
            raise
        self.refuses = None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that changes nothing, waits for none that does, and sees one state in all its statements."""
        with self._told(), self._engine.connect() as connection:
            if self.is_sqlite:
                connection.execution_options(laketier_begin="BEGIN")
            else:
                # By READ COMMITTED a migration may land between two statements: tables without a version are seen.
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection

    def lock(self, connection: Connection, what: str) -> None:
        """Let no other process be here with the same ``what`` until the transaction ends."""
        if not self.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": zlib.crc32(what.encode())})

    def now(self, connection: Connection) -> int:
        """Ms since the epoch. By PostgreSQL's clock, so that all workers have one; by this host's for SQLite, which is
        on this host."""
        if self.is_sqlite:
            return host_time()
        asked = connection.execute(text("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"))
        return int(asked.scalar_one())

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise self._as_state_error(error) from error

    def _as_state_error(self, error: Exception) -> StateError:
        why = redacted(str(getattr(error, "orig", None) or error).strip().replace("\n", " "))
        if self._password:
            why = why.replace(str(self._password), "***")
        if isinstance(getattr(error, "orig", error), _FileGone):
            way_out = "Restore it, or start a worker, which makes one: the lake tables say where each table goes on."
            return StateUnavailable("the state database is gone", where=self.shown, why=why, fix=way_out)
        if not _is_of_the_way(error):
            fix = _ways_out(error, why)
            if fix is not None:
                return StateUnavailable("the state database refused", where=self.shown, why=why, fix=fix)
            fix = "Check the URL, and the rights of its user in the database."
            if self.is_sqlite:
                fix = "Check that the file is a state database of laketier's, and whole; or name another one."
            return StateError("the state database refused", where=self.shown, why=why, fix=fix)
        fix = "Check that the file's folder exists, can be written and has space."
        if _code(error) == sqlite3.SQLITE_FULL:
            fix = "Free space in its folder. Workers that run go on by themselves then; no row is lost."
        if not self.is_sqlite:
            fix = "Check that the server runs and that the URL is right; the call may then be made again."
            if _NO_HOST in why:  # no fault of the file for sure: names of containers come and go with their servers
                fix = f"Check how the host is written in the URL. {fix}"
        return StateUnavailable("the state database did not answer", where=self.shown, why=why, fix=fix)


def _ways_out(error: Exception, why: str) -> str | None:
    """For what a database refuses as long as it is as it is, whatever is asked."""
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    if state == _READ_ONLY or "during recovery" in why:
        return (
            "Name the server that takes writes: this one is a replica, or lets nobody write just now. Where the URL "
            "names several hosts, ?target_session_attrs=read-write finds it."
        )
    if state == _NO_TABLE or why.startswith("no such table"):
        return (
            "Its tables are gone, or some of them. Restore it whole, or name a new one, and start all workers again: "
            "the lake tables say where each goes on."
        )
    return None


def _is_of_the_way(error: Exception) -> bool:
    """Whether the database could not be asked, or gave no answer: whatever was asked, it was not refused. PostgreSQL
    names some of the ways to end a connection, as of a worker that stood still in a transaction, like faults of SQL."""
    if isinstance(error, OperationalError):
        return not _is_of_sql(error)
    return isinstance(error, DBAPIError) and error.connection_invalidated


def _is_of_sql(error: OperationalError) -> bool:
    """Whether SQLite refuses a statement as tables and columns are other ones: that is no trouble with the file."""
    return _code(error) == sqlite3.SQLITE_ERROR


def may_pass(error: StateUnavailable) -> bool:
    """Whether a file holds no state for a moment: its disk is full or fails, or a backup or another process holds it.
    Nobody need correct the URL, or the file's folder."""
    return _code(error.__cause__) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY)


def _code(error: BaseException | None) -> int | None:
    """SQLite's number of an error, without what it adds for details."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _parse(url: str) -> tuple[str, URL]:
    shown = redacted(url)
    try:
        # Connections are made at any time, also after the process went to another folder.
        parsed = make_url(absolute_database(url))
    except (ArgumentError, ValueError) as error:
        raise ConfigError(
            "the state database's URL can't be read",
            where=shown,
            fix="Write sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE.",
        ) from error
    backend = parsed.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise ConfigError(
            f"{backend} can't hold the service's state", where=shown, fix="Use sqlite:///FILE or postgresql://..."
        )
    if backend == "sqlite" and (not parsed.database or parsed.database == ":memory:"):
        raise ConfigError(
            "the state can't be held in memory", where=shown, why="it must outlive the process", fix="Name a file."
        )
    return shown, parsed


def _sqlite(url: URL) -> Engine:
    if sqlite3.sqlite_version_info < _SQLITE_NEEDED:
        raise StateError(
            f"SQLite {sqlite3.sqlite_version} is too old",
            where=redacted(str(url)),
            fix="Use a Python with SQLite 3.35 or newer, or PostgreSQL.",
        )
    engine = sqlalchemy.create_engine(
        url.set(drivername="sqlite+pysqlite"), connect_args={"timeout": _BUSY_SECONDS, "isolation_level": None}
    )

    file = Path(str(url.database))
    was_there = False

    def look() -> tuple[int, int] | None:
        now = _identity(file)
        if was_there and now is None:
            raise _FileGone(f"{file} was there, and can't be found any more")
        return now

    @event.listens_for(engine, "do_connect")
    def _make_none(*_: Any) -> None:
        """An empty file in its place would look like a database that lost its tables."""
        look()

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, record: Any) -> None:
        nonlocal was_there
        connection.execute("PRAGMA journal_mode = WAL")
        # A fence that was given must not come back after a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        record.info[_FILE] = _identity(file)
        was_there = was_there or record.info[_FILE] is not None

    @event.listens_for(engine, "checkout")
    def _look(_: sqlite3.Connection, record: Any, __: Any) -> None:
        """SQLite goes on for ever with a file that was deleted or replaced, which no command and nobody else sees."""
        if look() != record.info[_FILE]:
            raise DisconnectionError  # makes the pool connect again

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("laketier_begin", "BEGIN IMMEDIATE"))

    return engine


def _identity(file: Path) -> tuple[int, int] | None:
    """Which file has that name; None where none can be seen."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _postgresql(url: URL) -> Engine:
    arguments: dict[str, Any] = {}
    if "connect_timeout" not in url.query:
        arguments["connect_timeout"] = 10
    if "options" not in url.query:
        # A worker that hangs in the middle of a transaction must not hang the others.
        arguments["options"] = f"-c lock_timeout={_BUSY_SECONDS}s -c idle_in_transaction_session_timeout=60s"
    try:
        return sqlalchemy.create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args=arguments,
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
        )
    except (ImportError, NoSuchModuleError) as error:
        raise StateError(
            "PostgreSQL can't be reached", why=str(error), fix="Install laketier[server,postgresql]."
        ) from error
