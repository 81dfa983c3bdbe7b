"""The embedded catalog: pyiceberg's SQL catalog in a file of the warehouse, which reads a metadata file once."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any
from urllib.parse import unquote, urlparse

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

REMEMBERED_TABLES = 256


class EmbeddedCatalog(SqlCatalog):
    """Each look at a table asks the database which metadata file is current, and pyiceberg then parses that file, which
    lists every snapshot. The file never changes, and a round looks several times: so the newest one of each table is
    kept. Safe in threads: each step on the mapping is one."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._parsed: OrderedDict[str, tuple[Any, TableMetadata]] = OrderedDict()

    def _convert_orm_to_iceberg(self, orm_table: Any) -> Table:
        location: str | None = orm_table.metadata_location
        file = None if location is None else _identity(location)
        if location is None or file is None:
            return super()._convert_orm_to_iceberg(orm_table)
        name = f"{orm_table.table_namespace}.{orm_table.table_name}"
        kept = self._parsed.get(name)
        if kept is None or kept[0] != file:
            table = super()._convert_orm_to_iceberg(orm_table)
            self._parsed[name] = (file, table.metadata)
            while len(self._parsed) > REMEMBERED_TABLES:
                self._parsed.popitem(last=False)
            return table
        metadata = kept[1]
        return Table(
            identifier=(*Catalog.identifier_to_tuple(orm_table.table_namespace), orm_table.table_name),
            metadata=metadata,
            metadata_location=location,
            io=self._load_file_io(metadata.properties, location),
            catalog=self,
        )


def _identity(location: str) -> tuple[Any, ...] | None:
    """Of a local file, so that one that was damaged, deleted or put back is read again; None for what is none."""
    parsed = urlparse(location)
    path = unquote(parsed.path) if parsed.scheme == "file" else location
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return location, found.st_ino, found.st_size, found.st_mtime_ns
