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
_HEAD = 100


def current_pointer(settings: CatalogSettings, path: TablePath) -> str | None:
    """For `LakeCatalog.table_version`: the location of the current metadata file, which has a name of its own for each
    commit, and where it is on a local disk also what tells it from a file that was put in its place. None for a catalog
    behind a server: loading the table is the only request that it has."""
    counted = _unchanged(settings) if settings.embedded else None
    remembered = _pointers.get((settings.warehouse, path)) if counted is not None else None
    if remembered is not None and remembered[0] == counted:
        location: str | None = remembered[1]
    else:
        location = _embedded(settings, path) if settings.embedded else _sql(settings, path)
        # The same before the query and after it: so it is of what was asked.
        if location and counted is not None and _unchanged(settings) == counted:
            _remember(settings.warehouse, path, counted, location)
    if not location:
        return None
    local = _local(location)
    if local is None:
        return location
    identity = file_identity(local)
    return None if identity is None else f"{location}:{identity}"


_pointers: dict[tuple[str, TablePath], tuple[str, str]] = {}
_MOST_POINTERS = 10_000


def _remember(warehouse: str, path: TablePath, counted: str, location: str) -> None:
    if len(_pointers) >= _MOST_POINTERS:
        _pointers.clear()
    _pointers[warehouse, path] = counted, location


def metadata_bytes(table: TableInfo) -> int | None:
    """For `LakeCatalog.handle_bytes`."""
    local = None if table.handle is None else _local(table.handle.metadata_location)
    try:
        return None if local is None else _IN_MEMORY * os.stat(local).st_size
    except (OSError, ValueError):
        return None


def _unchanged(settings: CatalogSettings) -> str | None:
    """Names the content of the embedded catalog: its file, and the counter in its head that SQLite raises with each
    transaction. None while a transaction is in the making or has to be undone, and for a file with a log beside it, of
    which the counter says nothing."""
    journals = (f"{settings.database}-journal", f"{settings.database}-wal")
    if any(map(os.path.lexists, journals)):
        return None
    try:
        with open(settings.database, "rb", buffering=0) as file:
            head, found = file.read(_HEAD), os.fstat(file.fileno())
    except OSError:
        return None
    # Once more: a transaction may have begun in between, whose counter is not yet that of anything.
    if len(head) < _HEAD or head[18:20] != b"\x01\x01" or any(map(os.path.lexists, journals)):
        return None
    return f"{found.st_dev:x}.{found.st_ino:x}.{found.st_size:x}.{head[24:28].hex()}"


def _embedded(settings: CatalogSettings, path: TablePath) -> str | None:
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
