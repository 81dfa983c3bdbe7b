"""Tables of files that lie there: by the name of their folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.kit.storage_errors import naming_storage_errors
from laketier.kit.warehouse import local_warehouse
from laketier.registry import configure, open_lake
from laketier.spi import AdoptedTable, ConfigError, TablePath


def adopt_folder(
    folder: str | os.PathLike[str],
    lake_format: str,
    *,
    partitions: bool = False,
    types: Mapping[str, pa.DataType] | None = None,
    options: Mapping[str, str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> AdoptedTable:
    """Make a table of the files of a folder, where they lie. Driver. All of it, or nothing; idempotent.

    ``folder``: ``warehouse/database/table``, a path or a URI such as ``s3://bucket/prefix/database/table``.
    ``partitions``: whether folders named ``column=value`` are partitions. ``types``: of columns whose files disagree.
    ``options``: other keys of the lake, such as those that the format has of its own. Raises as `LakeAdoption.adopt`,
    and `ConfigError` for a folder whose name is no table's.
    """
    location = _absolute(folder)
    above, _, name = location.rpartition("/")
    warehouse, _, database = above.rpartition("/")
    try:
        path = TablePath(database, name)
        if warehouse.endswith((":", ":/")):
            raise ConfigError(f"{location!r} has no warehouse above the table")
    except ConfigError as error:
        raise ConfigError(
            error.what,
            where=location,
            why="a table is named by its folder and by the one above it",
            fix="Rename the folder: letters, digits, _ and -, as in /data/lake/sales/orders.",
        ) from error
    chosen: Mapping[str, Any] = types or {}
    for column, kind in chosen.items():
        if not isinstance(kind, pa.DataType):
            raise ConfigError(
                f"{kind!r} is no type of column {column!r}",
                where=location,
                fix="Give a type of Arrow, such as pyarrow.string().",
            )
    named = {"lake.format": lake_format, "lake.warehouse": warehouse or "/", "lake.table": str(path)}
    config = configure({**(options or {}), **named}, origin="the command line")
    lake = open_lake(config)
    with naming_storage_errors("the folder was adopted"):
        return lake.adoption().adopt(path, partitions=partitions, types=types, on_progress=on_progress)


def _absolute(folder: object) -> str:
    """Without slashes at its end. A URI of a store is taken as it is."""
    given = os.fspath(folder) if isinstance(folder, str | os.PathLike) else None
    if not isinstance(given, str):
        raise ConfigError(f"the folder is {folder!r}, and not text", fix="Give a path or a URI.")
    if not given.strip():
        raise ConfigError("the folder is empty", fix="Give a path or a URI.")
    is_uri = isinstance(folder, str) and (given.lower().startswith("file:/") or "://" in given)
    found = local_warehouse(given) if is_uri else Path(os.path.abspath(os.path.expanduser(given)))
    return given.rstrip("/") if found is None else found.as_posix()
