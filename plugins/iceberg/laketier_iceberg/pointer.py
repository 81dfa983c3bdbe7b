"""Which metadata file of a table is current, asked of the catalog's database alone. Does not import pyiceberg for the
embedded catalog."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from urllib.parse import quote, unquote, urlparse

from laketier.kit.file_identity import file_identity
from laketier.spi import LaketierError, TableInfo, TablePath
from laketier_iceberg.connection import EMBEDDED_NAME, LOCK_SECONDS, CatalogSettings, connect, naming_catalog_errors

_CURRENT = (
    "select metadata_location from iceberg_tables where catalog_name = ? and table_namespace = ? and table_name = ?"
)
_IN_MEMORY = 10


def current_pointer(settings: CatalogSettings, path: TablePath) -> str | None:
    """For `LakeCatalog.table_version`: the location of the current metadata file, which has a name of its own for each
    commit, and where it is on a local disk also what tells it from a file that was put in its place. None for a catalog
    behind a server: loading the table is the only request that it has."""
    location = _embedded(settings, path) if settings.embedded else _sql(settings, path)
    local = None if location is None else _local(location)
    if local is None:
        return location
    identity = file_identity(local)
    return None if identity is None else f"{location}:{identity}"


def metadata_bytes(table: TableInfo) -> int | None:
    """For `LakeCatalog.handle_bytes`."""
    local = None if table.handle is None else _local(table.handle.metadata_location)
    try:
        return None if local is None else _IN_MEMORY * os.stat(local).st_size
    except (OSError, ValueError):
        return None


def _embedded(settings: CatalogSettings, path: TablePath) -> str | None:
    """Asked through SQLite, also where a look at the file's head would do: to close a file gives up the locks that the
    process has on it, so that another process could write into the middle of a transaction of another thread."""
    uri = f"file:{quote(str(settings.database))}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS)) as database:
            found = database.execute(_CURRENT, (EMBEDDED_NAME, path.database, path.table)).fetchone()
    except sqlite3.Error:  # locked, not there, damaged, or with a journal to undo: whoever loads the table finds out
        return None
    return None if found is None or not isinstance(found[0], str) else found[0]


def _sql(settings: CatalogSettings, path: TablePath) -> str | None:
    from laketier_iceberg.stored import metadata_file

    try:
        with naming_catalog_errors(settings):
            return metadata_file(connect(settings), (path.database, path.table))
    except LaketierError:
        return None


def _local(location: str) -> str | None:
    parsed = urlparse(location)
    if parsed.scheme == "file":
        return unquote(parsed.path)
    return None if parsed.scheme else location
