"""From what a user wrote of a source to an open one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from laketier.config import parse_options
from laketier.kit.storage_errors import naming_storage_errors
from laketier.registry.discovery import load_source
from laketier.spi import LogSource, LogSourceConfig, LogSourcePlugin, TableLog


@dataclass(frozen=True)
class OpenSource:
    """A source by the name that its user gave it. Driver only."""

    name: str
    plugin: LogSourcePlugin
    source: LogSource
    origin: str

    def check_table_options(self, options: Mapping[str, Any], *, origin: str) -> Any:
        """Type the options of a table. Asks nobody; raises `ConfigError`."""
        return parse_options(self.plugin.table_options_type, options, prefix="read.", origin=origin)

    def open(self, table: str, options: Mapping[str, Any] | None = None) -> TableLog:
        """The log of a table. Raises `TableNotFound`, `ConfigError` and `StorageError`."""
        typed = self.check_table_options(options or {}, origin=self.origin)
        with naming_storage_errors("a table of the source was opened", setting="the source's options"):
            return self.source.open(table, typed)


def open_log_source(kind: str, options: Mapping[str, Any], *, name: str, origin: str) -> OpenSource:
    """Load the plugin, type its options, and make the source. Driver. Raises `PluginError`, `ConfigError` and
    `StorageError`."""
    plugin = load_source(kind)
    typed = parse_options(plugin.options_type, options, prefix="options.", origin=origin)
    with naming_storage_errors("the source was opened", setting="the source's options"):
        return OpenSource(name, plugin, plugin.create_source(LogSourceConfig(name, typed)), origin)
