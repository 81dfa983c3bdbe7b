"""The database below the state store: versions, bad URLs, secrets, indexes."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import event

from laketier.service.state import (
    LeaseLost,
    StateError,
    StateStore,
    Success,
)
from laketier.service.state.tables import METADATA
from laketier.spi import ConfigError
from laketier.spi.redaction import redacted
from state_tables import A, B, table


def test_services_share_a_database_and_nothing_else(url: str, store: StateStore) -> None:
    store.register([table("t")])
    with StateStore.open(url, service="other") as other:
        assert other.snapshot() == other.acquire(B, 1, 30) == ()
        other.register([table("t")])
        (lease,) = store.acquire(A, 1, 30)
        with pytest.raises(LeaseLost):
            other.finish(lease, Success())
        assert other.register([]).dropped == ("s.t",)
    store.finish(lease, Success())


def test_alembic_is_imported_when_a_database_is_opened() -> None:
    code = "import sys, laketier.service.state; assert 'alembic' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_migrations_make_what_the_code_expects(url: str, store: StateStore) -> None:
    def made(engine: sqlalchemy.Engine) -> set[tuple[str, frozenset[str]]]:
        """Each statement as the parts between its commas: what a later migration adds stands at another place."""
        with engine.connect() as connection:
            rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").all()
        parts = {name: re.split(r",\s*(?![^()]*\))", " ".join(sql.split()).rstrip(") ")) for name, sql in rows}
        return {
            (name, frozenset(part.rstrip(") ") for part in parts[name])) for name in parts if name != "alembic_version"
        }

    migrated, expected = sqlalchemy.create_engine(url), sqlalchemy.create_engine("sqlite://")
    METADATA.create_all(expected)
    assert made(migrated) == made(expected) != set()
    migrated.dispose()
    expected.dispose()


def test_a_newer_database_is_refused(url: str, tmp_path: Path) -> None:
    StateStore.open(url).close()
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    with pytest.raises(StateError, match=r"of a newer laketier, because its version is 9999.*Update laketier"):
        StateStore.open(url)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("mysql://u:hush@h/d", "mysql can't hold"),
        ("sqlite://", "can't be held in memory"),
        ("nothing", "can't be read"),
        ("postgresql://u:hush@h:port/d", "can't be read"),
    ],
)
def test_a_url_that_is_none_is_refused(bad: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        StateStore.open(bad)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:p@ss:w/rd@h:5/d?x=1", "postgresql://u:***@h:5/d?x=1"),
        ("postgresql://h/d?user=u&password=hush&x=1", "postgresql://h/d?user=u&password=***&x=1"),
        ("no secret in sqlite:///a/b@c.db", "no secret in sqlite:///a/b@c.db"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
    ],
)
def test_passwords_are_never_shown(text: str, shown: str) -> None:
    assert redacted(text) == shown


def test_a_file_that_can_not_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"unable to open database file.*Check that the file's folder exists"):
        StateStore.open(f"sqlite:///{tmp_path}/no/such/folder.db")
    (tmp_path / "text.db").write_text("this is no database at all, and never was one")
    with pytest.raises(StateError, match="file is not a database"):
        StateStore.open(f"sqlite:///{tmp_path}/text.db")


def _other_program(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
    connection.execute("INSERT INTO alembic_version VALUES ('3f2a9c')")


def _namesake(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE tiering_tables (x INTEGER)")


def _without_version(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM alembic_version")


def _half_migrated(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE alembic_version SET version_num = '0001'")


def _unknown_state(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE tiering_tables SET state = 'MOVED'")


@pytest.mark.parametrize(
    ("ours", "change", "said"),
    [
        (False, _other_program, r"the database is another program's.*alembic_version says 3f2a9c.*Name another"),
        (False, _namesake, r"names of laketier's, and no version of theirs.*Restore it whole, or name another"),
        (True, _without_version, r"names of laketier's, and no version of theirs"),
        (
            True,
            _half_migrated,
            r"the state database refused.*duplicate column.*a state database of laketier's, and whole",
        ),
        (True, _unknown_state, r"has 'MOVED' for the table s\.t, and.*does not know that value.*Update laketier"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_database_that_is_none_of_ours_is_told(
    tmp_path: Path, ours: bool, change: Callable[[sqlite3.Connection], None], said: str
) -> None:
    file = tmp_path / "odd.db"
    if ours:
        with StateStore.open(f"sqlite:///{file}") as made:
            made.register([table("t")])
    with closing(sqlite3.connect(file)) as connection, connection:
        change(connection)
    with pytest.raises(StateError, match=said), StateStore.open(f"sqlite:///{file}") as opened:
        opened.snapshot()


def test_no_question_of_acquire_scans_all_tables(store: StateStore) -> None:
    """The planner's word for each statement that acquire, heartbeat and finish send."""
    store.register([table(f"t{number}") for number in range(20)])
    engine = store._database._engine
    sent: list[tuple[str, Any]] = []

    @event.listens_for(engine, "before_cursor_execute")
    def keep(_c: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        sent.append((statement, parameters[0] if many else parameters))

    leases = store.acquire(A, 5, 30)
    leases = store.heartbeat(A, leases, 30)
    store.finish_all([(lease, Success(force_completed=lease.fence % 2 == 1)) for lease in leases])
    event.remove(engine, "before_cursor_execute", keep)
    plans: list[str] = []
    with engine.connect() as connection:
        for statement, parameters in sent:
            if statement.startswith(("SELECT", "UPDATE")):
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                plans.extend(line[3] for line in plan)
    assert len(plans) > 8
    assert [plan for plan in plans if plan.startswith("SCAN tiering")] == []
    for index in ("queue", "due", "next_try", "lease"):
        assert any(f"ix_tiering_tables_{index}" in plan for plan in plans), index
