"""Bringing a state database to the version of this laketier."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect

from laketier.service.state.database import Database
from laketier.service.state.errors import StateError
from laketier.service.state.tables import METADATA

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

_OURS = re.compile(r"\d{4}")
_ONE_AT_A_TIME = threading.Lock()  # alembic keeps what it works on in module globals


def migrate(database: Database) -> None:
    """Bring the database to the newest version, in one transaction. Other processes may do the same at the same time.
    Raises `StateError` for a database that a newer laketier has migrated already."""
    from alembic import command  # not before a database is opened
    from alembic.config import Config
    from alembic.script import ScriptDirectory

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
    from alembic.runtime.migration import MigrationContext

    heads = set(MigrationContext.configure(connection).get_current_heads())
    known = {script.revision for script in scripts.walk_revisions()}
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
            fix="Restore it whole, or name another database: the lake tables have the watermarks.",
        )
    if heads - known:
        raise StateError(
            "the state database is of a newer laketier",
            where=shown,
            why=f"its version is {', '.join(sorted(heads))}, and the newest known here is {scripts.get_current_head()}",
            fix="Update laketier here, or use another database.",
        )
    return heads == set(scripts.get_heads())
