"""Opens a source from its settings."""

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
    """An open source, with the name that its user gave it. Driver only."""

    name: str
    plugin: LogSourcePlugin
    source: LogSource
    origin: str

    def check_table_options(self, options: Mapping[str, Any], *, origin: str) -> Any:
        """Type the options of a table, without asking the source.

        Raises:
            ConfigError: An option is unknown or ill-typed.
        """
        return parse_options(self.plugin.table_options_type, options, prefix="read.", origin=origin)

    def open(self, table: str, options: Mapping[str, Any] | None = None) -> TableLog:
        """Open the log of a table.

        Raises:
            TableNotFound: The source has no such table.
            ConfigError: An option is unknown or ill-typed, or does not fit the table.
            StorageError: The source does not answer.
        """
        typed = self.check_table_options(options or {}, origin=self.origin)
        with naming_storage_errors("a table of the source was opened", setting="the source's options"):
            return self.source.open(table, typed)


def open_log_source(kind: str, options: Mapping[str, Any], *, name: str, origin: str) -> OpenSource:
    """Load the plugin, type its options, and make the source. Driver.

    Args:
        kind: The value of ``type``.
        options: The source's options.
        name: The name that the user gave the source.
        origin: Where the options come from, for messages.

    Returns:
        The source.

    Raises:
        PluginError: The kind of source is not installed, or can't be used.
        ConfigError: An option is unknown or ill-typed.
        StorageError: The source does not answer.
    """
    plugin = load_source(kind)
    typed = parse_options(plugin.options_type, options, prefix="options.", origin=origin)
    with naming_storage_errors("the source was opened", setting="the source's options"):
        return OpenSource(name, plugin, plugin.create_source(LogSourceConfig(name, typed)), origin)
