"""The embedded catalog: pyiceberg's SQL catalog in a file of the warehouse, which reads a metadata file once."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any
from urllib.parse import unquote, urlparse

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.io import load_file_io
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Identifier
from sqlalchemy import Dialect, Engine, event
from sqlalchemy.sql.compiler import Compiled

from laketier_iceberg.stored import has_namespace, metadata_file

REMEMBERED_TABLES = 256


class EmbeddedCatalog(SqlCatalog):
    """Each look at a table asks the database which metadata file is current, and pyiceberg then parses that file, which
    lists every snapshot. The file never changes, and a round looks several times: so the newest one of each table is
    kept. Safe in threads: each step on the mapping is one."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._parsed: OrderedDict[Identifier, tuple[Any, TableMetadata]] = OrderedDict()

    @property
    def engine(self) -> Engine:
        """What asks the database. pyiceberg makes it, and asks it at once."""
        return self._engine

    @engine.setter
    def engine(self, made: Engine) -> None:
        event.listen(made, "connect", _sync_the_end)
        self._engine = made.execution_options(compiled_cache=_COMPILED)

    def load_table(self, identifier: str | Identifier) -> Table:
        """The table as it is now. Raises what `SqlCatalog.load_table` does."""
        name = self.identifier_to_tuple(identifier)
        location = metadata_file(self, name)
        file = None if location is None else _identity(location)
        if location is None or file is None:
            return super().load_table(identifier)
        kept = self._parsed.get(name)
        if kept is not None and kept[0] == file:
            io = load_file_io(self.properties, location)
            return Table(identifier=name, metadata=kept[1], metadata_location=location, io=io, catalog=self)
        table = super().load_table(identifier)
        if table.metadata_location == location:  # else another commit came in between
            self._parsed[name] = (file, table.metadata)
            while len(self._parsed) > REMEMBERED_TABLES:
                self._parsed.popitem(last=False)
        return table

    def namespace_exists(self, identifier: str | Identifier) -> bool:
        """As `SqlCatalog.namespace_exists`, which makes two questions anew each time. A new table asks three times."""
        return has_namespace(self, self.namespace_to_string(self.identifier_to_tuple(identifier), NoSuchNamespaceError))


class _Compiled(dict[Any, Compiled]):
    """SQLAlchemy's statements as text for SQLite. An engine keeps its own, as each has a dialect of its own; those of
    embedded catalogs are alike, and to compile what a first round asks takes longer than to ask it. pyiceberg asks the
    same few questions of each warehouse, so this does not grow."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_of_any_engine(key), default)

    def __setitem__(self, key: Any, compiled: Compiled) -> None:
        super().__setitem__(_of_any_engine(key), compiled)


_COMPILED = _Compiled()


def _of_any_engine(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(type(part) if isinstance(part, Dialect) else part for part in key)


def _sync_the_end(connection: Any, _: object) -> None:
    """SQLite ends a transaction by removing its journal. By default it does not sync that, so after a power cut the
    journal may be back, and undo what was answered."""
    connection.execute("PRAGMA synchronous = EXTRA")


def _identity(location: str) -> tuple[Any, ...] | None:
    """Of a local file, so that one that was damaged, deleted or put back is read again; None for what is none."""
    parsed = urlparse(location)
    path = unquote(parsed.path) if parsed.scheme == "file" else location
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return location, found.st_ino, found.st_size, found.st_mtime_ns
