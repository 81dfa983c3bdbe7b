"""Bringing a state database to the version of this laketier."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from laketier.service.state.database import Database
from laketier.service.state.errors import StateError

_ONE_AT_A_TIME = threading.Lock()  # alembic keeps what it works on in module globals


def migrate(database: Database) -> None:
    """Bring it to the newest version, in one transaction, whatever other processes do the same. Raises `StateError`
    for a database that a newer laketier has migrated already."""
    config = Config()
    config.set_main_option("script_location", (Path(__file__).parent / "migrations").as_posix().replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    with database.read() as connection:
        if _is_newest(connection, scripts, database.shown):
            return
    with _ONE_AT_A_TIME, database.write() as connection:
        database.lock(connection, "laketier migrations")
        if not _is_newest(connection, scripts, database.shown):
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def _is_newest(connection: Connection, scripts: ScriptDirectory, shown: str) -> bool:
    heads = set(MigrationContext.configure(connection).get_current_heads())
    known = {script.revision for script in scripts.walk_revisions()}
    if heads - known:
        raise StateError(
            "the state database is of a newer laketier",
            where=shown,
            why=f"its version is {', '.join(sorted(heads))}, and the newest known here is {scripts.get_current_head()}",
            fix="Update laketier here, or use another database.",
        )
    return heads == set(scripts.get_heads())
