"""Warehouses of the embedded catalog that were moved or copied with their files. Plain Python.

Iceberg's metadata has absolute paths. So the catalog of a copy names the metadata, and the rows, of the place where it
was made: who reads the copy gets the other one's rows, and who writes to it writes there.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from laketier.spi import CorruptTable, TablePath
from laketier_iceberg.locations import is_local, split

_OF_A_TABLE = 4
"""Database, table, ``metadata`` and the file: where this plugin's tables have it, below a warehouse."""


def refuse_moved(warehouse: str, path: TablePath, metadata: str) -> None:
    """``metadata``: the location of the table's current metadata file. One that lies elsewhere alone was registered by
    somebody; of one that lies here as well nobody can tell which one is meant. Raises `CorruptTable`."""
    parts = split(metadata)
    if not is_local(parts) or parts.path.startswith(f"{warehouse}/"):
        return
    named = Path(unquote(parts.path) if parts.scheme else parts.path)
    here = Path(warehouse, *named.parts[-_OF_A_TABLE:])
    try:
        if os.path.samestat(os.stat(here), os.stat(named)):
            return  # a link leads from one to the other
    except OSError:
        return
    raise CorruptTable(
        f"the metadata of table {path} names files of another place",
        where=warehouse,
        why=f"it says {named}, and {here} is there, too: the warehouse was moved or copied, with absolute paths in it",
        fix="Open the warehouse under its former path. For tables of its own, choose an empty folder as the warehouse, "
        "and write the rows there.",
    )
