"""Bringing a state database to the version of this laketier."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

from laketier.service.state.database import Database
from laketier.service.state.errors import StateError
from laketier.service.state.tables import METADATA

_OURS = re.compile(r"\d{4}")
_ONE_AT_A_TIME = threading.Lock()  # alembic keeps what it works on in module globals
_MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(database: Database) -> None:
    """Bring it to the newest version, in one transaction, whatever other processes do the same. Raises `StateError`
    for a database that a newer laketier has migrated already."""
    with database.read() as connection:
        if _is_newest(connection, database.shown):
            return
    with _ONE_AT_A_TIME, database.write() as connection:
        database.lock(connection, "laketier migrations")
        if not _is_newest(connection, database.shown):
            _upgrade(connection)


def _upgrade(connection: Connection) -> None:
    from alembic import command  # takes longer to import than a look at the version, which is most often the newest
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", _MIGRATIONS.as_posix().replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def versions() -> list[str]:
    """All that this laketier knows, from the names of its migrations; the newest is the last."""
    return sorted(path.name[1:5] for path in (_MIGRATIONS / "versions").glob("v*.py"))


def _versions_of(connection: Connection) -> set[str]:
    """What alembic noted: one, or none before the first migration."""
    if not inspect(connection).has_table("alembic_version"):
        return set()
    return set(connection.scalars(select(column("version_num")).select_from(table("alembic_version"))))


def _is_newest(connection: Connection, shown: str) -> bool:
    heads, known = _versions_of(connection), versions()
    if any(_OURS.fullmatch(head) is None for head in heads):
        raise StateError(
            "the database is another program's",
            where=shown,
            why=f"its table alembic_version says {', '.join(sorted(heads))}, which is no version of laketier's",
            fix="Name another database for the state.",
        )
    if not heads and METADATA.tables.keys() & set(inspect(connection).get_table_names()):
        raise StateError(
            "the database has tables with the names of laketier's, and no version of theirs",
            where=shown,
            why="they are another program's, or the table alembic_version was lost",
            fix="Restore it whole, or name another database: the lake tables know how far each one is.",
        )
    if heads - set(known):
        raise StateError(
            "the state database is of a newer laketier",
            where=shown,
            why=f"its version is {', '.join(sorted(heads))}, and the newest known here is {known[-1]}",
            fix="Update laketier here, or use another database.",
        )
    return heads == {known[-1]}
