"""Where a table is: ``<warehouse>/<database>/<table>.lance``, the name under which LanceDB and others find it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from laketier.spi import TablePath

SUFFIX = ".lance"

UNLINKED = "#"
"""Lance's local store writes a manifest as ``<name>#1`` first, then links it to its name, which is its
compare-and-set, and can't address such files itself."""


def normalise(warehouse: str) -> str:
    """A warehouse as an absolute path, or as a URI without a trailing slash."""
    if warehouse.startswith("file:"):
        warehouse = url2pathname(urlsplit(warehouse).path)
    if "://" in warehouse:
        return warehouse.rstrip("/")
    return os.path.abspath(os.path.expanduser(warehouse))


def table_location(warehouse: str, path: TablePath) -> str:
    """The URI or absolute path of a table's dataset."""
    return f"{warehouse}/{path.database}/{path.table}{SUFFIX}"


def local_path(location: str) -> Path | None:
    """The path of a location on the local file system, None for one in an object store."""
    return None if "://" in location else Path(location)
