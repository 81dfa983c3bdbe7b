"""Names a table for the cache: the same whatever way leads to its warehouse, and without any secret."""

from __future__ import annotations

import hashlib
import json
import os
import typing
from dataclasses import dataclass
from functools import cached_property, lru_cache
from urllib.parse import urlsplit

from laketier.config import LakeConfig
from laketier.kit.warehouse import local_warehouse
from laketier.registry import load_format
from laketier.spi import ConfigError, Passthrough, PluginError
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
        text: Canonical JSON of the format, the warehouse, the options that lead to it, and the table's name.
        alias: The warehouse as this caller names it: a description has locations below it.
        is_whole: Whether nothing that leads to the table was left out.
    """

    text: str
    alias: str
    is_whole: bool

    @cached_property
    def name(self) -> str:
        """A name for a file."""
        return hashlib.sha256(self.text.encode()).hexdigest()


_MOST_REMEMBERED = 4096
_remembered: dict[tuple[object, ...], TableKey] = {}
"""Finding the real path takes longer than a check of a version. A link that leads elsewhere by now does no harm: the
version is asked for through it."""


def table_key(config: LakeConfig) -> TableKey | None:
    """The key of the configured table. One folder has one key, through links and relative paths, with a slash at the
    end, and as a ``file:`` URI. None for a format or a warehouse that can't be used: whoever opens it says why."""
    if "://" not in config.warehouse and not config.warehouse.startswith("/"):
        return _table_key(config)  # it depends on the working folder
    known = (config.format, config.warehouse, config.table, *config.format_options.items())
    found = _remembered.get(known)
    if found is None and (found := _table_key(config)) is not None:
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        _remembered[known] = found
    return found


def _table_key(config: LakeConfig) -> TableKey | None:
    try:
        plugin = load_format(config.format)
        if plugin.warehouse_is_location(config.warehouse, config.format_options):
            alias, warehouse = _location(config.warehouse)
        else:
            alias = warehouse = redacted(config.warehouse)
    except (ConfigError, PluginError, OSError, ValueError):
        return None
    options, is_whole = _options(config, plugin.options_type)
    document = {"format": config.format, "warehouse": warehouse, "options": options, "table": str(config.table)}
    return TableKey(json.dumps(document, sort_keys=True, separators=(",", ":")), alias, is_whole)


def _location(warehouse: str) -> tuple[str, str]:
    folder = local_warehouse(warehouse)
    if folder is not None:
        return str(folder), f"file://{os.path.realpath(folder)}"
    parts = urlsplit(warehouse)
    scheme = _SAME_SCHEME.get(parts.scheme, parts.scheme)
    return redacted(warehouse), redacted(f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}")


def _options(config: LakeConfig, kind: type) -> tuple[dict[str, str], bool]:
    """Those that lead to tables: names, and what is handed to a library. Numbers, flags and choices say how it is
    written. A value that may be a secret is left out."""
    hints, found, is_whole = _hints(kind), {}, True
    for key, value in config.format_options.items():
        head, _, rest = key.partition(".")
        hint = hints.get(head)
        leads = hint in (str, Passthrough) or str in typing.get_args(hint) or hint is None
        if not leads:
            continue
        last = (rest or head).rpartition(".")[2].lower()
        if is_secret(key) or holds_secret(value) or (rest and last not in _PLACES):
            is_whole = False
        if not is_secret(key) and (not rest or last in _PLACES):
            found[key] = redacted(value)
    return found, is_whole


@lru_cache(maxsize=32)
def _hints(kind: type) -> dict[str, typing.Any]:
    return {name.replace("_", "-"): hint for name, hint in typing.get_type_hints(kind).items()}
