"""Names a table for the cache: the same whatever way leads to its warehouse, and without any secret."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from laketier.config import LakeConfig
from laketier.kit.warehouse import local_warehouse
from laketier.registry import load_format, maker_of
from laketier.spi import ConfigError, LakeStoragePlugin, PluginError, TableInfo, TablePath
from laketier.spi.redaction import holds_secret, is_secret, redacted

_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "gcs": "gs"}
_PLACES = frozenset(
    {"type", "uri", "warehouse", "endpoint", "endpoint_url", "endpoint-url", "aws_endpoint_url", "region",
     "aws_region", "default_region", "aws_default_region", "name", "prefix", "bucket"}
)  # fmt: skip
"""The last words of what libraries call settings that say where something is. Whatever else is given to a library may
be a secret, and is left out of the key."""


@dataclass(frozen=True)
class TableKey:
    """Which table it is.

    Attributes:
        text: Canonical JSON of the format, the warehouse, the options, the table's name, and what describes it: another
            release may describe the same table otherwise.
        alias: The warehouse as this caller names it: a description has locations below it.
        is_whole: Whether nothing that leads to the table was left out.
        way: All that the caller gave, secrets too. A handle, which holds them, is for callers who gave the same.
    """

    text: str
    alias: str
    is_whole: bool
    way: tuple[object, ...] = field(repr=False)

    @cached_property
    def name(self) -> str:
        """A name for a file."""
        return file_name(self.text)


@dataclass(frozen=True)
class KeyParts:
    """What a key names.

    Attributes:
        format: ``lake.format``.
        warehouse: Where its tables are.
        table: ``lake.table``.
        by: The releases that describe it.
    """

    format: str
    warehouse: str
    table: str
    by: str


@dataclass(frozen=True)
class _Remembered:
    key: TableKey
    folder: Path | None
    identity: tuple[int, int] | None


_MOST_REMEMBERED = 4096
_remembered: dict[tuple[object, ...], _Remembered] = {}
"""Finding the real path of a folder takes longer than a look whether it is still that folder."""


def table_key(config: LakeConfig) -> TableKey | None:
    """The key of the configured table. One folder has one key, through links and relative paths, with slashes doubled
    or at the end, and as a ``file:`` URI. None for a format or a warehouse that can't be used: whoever opens it says
    why. None, too, for a warehouse whose name may hold a secret."""
    if "://" not in config.warehouse and not config.warehouse.startswith("/"):
        return _table_key(config)  # it depends on the working folder
    known = (config.format, config.table, *_way(config))
    found = _remembered.get(known)
    if found is not None and found.identity == _identity(found.folder):
        return found.key
    folder = _folder(config.warehouse)
    identity, key = _identity(folder), _table_key(config)
    if key is None or (folder is not None and identity is None):
        return key
    if len(_remembered) >= _MOST_REMEMBERED:
        _remembered.clear()
    _remembered[known] = _Remembered(key, folder, identity)
    return key


def place_of(config: LakeConfig) -> str | None:
    """The warehouse, for `laketier.kit.warehouse.is_same_place`: a folder's absolute path, a URI, or a name. None for a
    format or a warehouse that can't be used, and for a warehouse whose name may hold a secret."""
    try:
        place = _place(load_format(config.format), config)
    except (ConfigError, PluginError, OSError, ValueError):
        return None
    if place is None:
        return None
    alias, real = place
    return alias if alias.startswith("/") else real


def file_name(text: str) -> str:
    """The name of the file of a key, without its end."""
    return hashlib.sha256(text.encode()).hexdigest()


def key_parts(text: str) -> KeyParts | None:
    """What a key names. None for a text that is no key of ours."""
    try:
        found = json.loads(text)
        parts = KeyParts(*(found[name] for name in ("format", "warehouse", "table", "by")))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return parts if all(isinstance(each, str) for each in vars(parts).values()) else None


def same_warehouse(text: str, other: str, table: TablePath | None) -> bool:
    """Whether ``other`` is a key of the format and the warehouse of the key ``text``, and of ``table`` if one is
    given, whatever the options and the releases."""
    one, found = key_parts(text), key_parts(other)
    if one is None or found is None or (one.format, one.warehouse) != (found.format, found.warehouse):
        return False
    return table is None or found.table == str(table)


def seen_by(alias: str, table: TableInfo, locations: Mapping[str, str]) -> TableInfo | None:
    """A table's description as it is loaded through a name of the warehouse, `TableKey.alias`; ``locations`` has its
    location by each. None where that is not known."""
    location = locations.get(alias)
    return None if location is None else replace(table, location=location)


def _table_key(config: LakeConfig) -> TableKey | None:
    try:
        plugin = load_format(config.format)
        maker, place = maker_of(config.format), _place(plugin, config)
    except (ConfigError, PluginError, OSError, ValueError):
        return None
    if place is None:
        return None
    alias, warehouse = place
    options, is_whole = _options(config)
    document = {
        "format": config.format,
        "warehouse": warehouse,
        "options": options,
        "table": str(config.table),
        "by": maker,
    }
    return TableKey(json.dumps(document, sort_keys=True, separators=(",", ":")), alias, is_whole, _way(config))


def _way(config: LakeConfig) -> tuple[object, ...]:
    return (config.warehouse, *sorted(config.format_options.items()))


def _place(plugin: LakeStoragePlugin, config: LakeConfig) -> tuple[str, str] | None:
    warehouse = config.warehouse
    if not plugin.warehouse_is_location(warehouse, config.format_options):
        return None if _may_hold_secret(warehouse) else (warehouse, warehouse)
    folder = local_warehouse(warehouse)
    if folder is not None:
        # Two slashes at the beginning stay two, for POSIX's sake.
        return str(folder), f"file:///{os.path.realpath(folder).lstrip('/')}"
    if _may_hold_secret(warehouse):
        return None
    scheme, _, rest = warehouse.partition("://")
    scheme = scheme.lower()
    return warehouse, f"{_SAME_SCHEME.get(scheme, scheme)}://{rest.rstrip('/')}"


def _may_hold_secret(warehouse: str) -> bool:
    """A query may be a signature, whatever its parts are called."""
    return redacted(warehouse) != warehouse or bool(urlsplit(warehouse).query)


def _folder(warehouse: str) -> Path | None:
    try:
        return local_warehouse(warehouse)
    except (ConfigError, OSError, ValueError):
        return None


def _identity(folder: Path | None) -> tuple[int, int] | None:
    try:
        found = None if folder is None else os.stat(folder)
    except (OSError, ValueError):
        return None
    return None if found is None else (found.st_dev, found.st_ino)


def _options(config: LakeConfig) -> tuple[dict[str, str], bool]:
    """All of the format's own, as any of them may tell how a table is described, and those of a library that lead
    somewhere. A value that may be a secret is left out."""
    found, is_whole = {}, True
    for key, value in config.format_options.items():
        rest = key.partition(".")[2]
        is_known = not rest or rest.rpartition(".")[2].lower() in _PLACES
        if is_known and not is_secret(key) and not holds_secret(value) and redacted(value) == value:
            found[key] = value
        else:
            is_whole = False
    return found, is_whole
