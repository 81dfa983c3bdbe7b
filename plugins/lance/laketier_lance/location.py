"""Where a table is: ``<warehouse>/<database>/<table>.lance``, the name under which LanceDB and others find it."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import pyarrow.fs as pafs

from laketier.kit import LocalFolder, TableFolder
from laketier.kit.access import access
from laketier.kit.local_store import LocalStore
from laketier.kit.warehouse import local_warehouse
from laketier.spi import ConfigError, TablePath

SUFFIX = ".lance"

BRANCHES = "tree"
"""Each branch has a folder in it that is a dataset of its own."""
FOLDERS = frozenset(("data", "_versions", "_transactions", "_deletions", "_indices", "_refs", BRANCHES))
"""What Lance makes in the place of a dataset."""

PROBE = "_laketier/clock"
"""The object whose date tells the time of an object store. Whoever is killed in between leaves it."""

SIGN = "_laketier/dropped"
"""The object in a store that says that a drop is under way, or was cut off."""

WITNESS = "_laketier/witness-"
"""Begins the name of an object in a store by which a commit to a table without rows sees that it was dropped."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_REMEMBERED = 1024
"""Locations whose paths are kept: a write asks for its table's ten times."""

UNLINKED = "#"
"""Lance's local store writes a manifest as ``<name>#1`` first, then links it to its name, which is its
compare-and-set, and can't address such files itself."""


def normalise(warehouse: str) -> str:
    """A warehouse as an absolute path, or as a URI without a trailing slash. Raises `ConfigError`."""
    if _CONTROL.search(warehouse):
        raise ConfigError(
            f"the warehouse {warehouse!r} has control characters in its path",
            where="lake.warehouse",
            why="Lance can't address such files",
            fix="Use a path without them.",
        )
    folder = local_warehouse(warehouse)
    return warehouse.rstrip("/") if folder is None else str(folder)


def table_location(warehouse: str, path: TablePath) -> str:
    """The URI or absolute path of a table's dataset."""
    return f"{warehouse}/{path.database}/{path.table}{SUFFIX}"


@lru_cache(_REMEMBERED)
def local_path(location: str) -> Path | None:
    """The path of a location on the local file system, None for one in an object store."""
    return None if "://" in location else Path(location)


def local_folder(location: str) -> TableFolder | None:
    """The files of a dataset on a local disk, for what compares and deletes them; None for one in an object store."""
    local = local_path(location)
    return None if local is None else TableFolder(pafs.LocalFileSystem(), str(local))


def refuse_links(location: str) -> None:
    """Raise `OutsideTable` where one of a local dataset's folders is a link: it may be another dataset's. For what
    writes and deletes; readers may follow it, as Lance does."""
    local = local_path(location)
    if local is None:
        return
    folder = LocalFolder(local)
    for name in sorted(FOLDERS):
        folder.refuse_links(name)


def refuse_others(location: str) -> None:
    """Raise `IncompatibleTable` where something else than what Lance makes lies in the place of a new table, if that is
    on a local disk."""
    local = local_path(location)
    if local is not None:
        with access("creating the table", where=location):
            LocalStore(local).refuse_others(FOLDERS)
