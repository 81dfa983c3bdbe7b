"""Opens a source from its settings."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from laketier.config import parse_options
from laketier.kit.library_errors import close_and_tell
from laketier.kit.storage_errors import naming_storage_errors
from laketier.registry.discovery import load_source
from laketier.registry.source_errors import naming_source_errors
from laketier.spi import (
    LogSource,
    LogSourceConfig,
    LogSourcePlugin,
    PluginBroken,
    TableLog,
)
from laketier.spi.visible import is_utf8

log = logging.getLogger(__name__)

_NAMED = 5


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

    def list_tables(self) -> list[str]:
        """The names of the source's tables. One that is no UTF-8 is left out, and told: whoever names a table must not
        stop a service.

        Raises:
            StorageError: The source does not answer.
            PluginBroken: The source gives something else than names.
        """
        with _naming("the tables of the source were listed", "LogSource.list_tables", where=self.name):
            found: list[Any] = list(self.source.list_tables())
        for name in found:
            if not isinstance(name, str) or not name:
                raise PluginBroken(
                    f"the source breaks its contract: `list_tables` has {name!r}",
                    where=self.name,
                    why="a name is text, and not empty",
                    fix="Report it to the author of the source.",
                )
        odd = [name for name in found if not is_utf8(name)]
        if odd:
            log.warning("[source=%s] tables whose names are no UTF-8 are left out: %s", self.name, ascii(odd[:_NAMED]))
        return [name for name in found if name not in odd]

    def open(self, table: str, options: Mapping[str, Any] | None = None) -> TableLog:
        """Open the log of a table.

        Raises:
            TableNotFound: The source has no such table.
            ConfigError: An option is unknown or ill-typed, or does not fit the table.
            StorageError: The source does not answer.
        """
        typed = self.check_table_options(options or {}, origin=self.origin)
        with _naming("a table of the source was opened", "LogSource.open", where=f"{self.name}.{table}"):
            return self.source.open(table, typed)

    def close(self) -> None:
        """Release the source's resources. Raises nothing that the source did: the others are to be closed, too."""
        close_and_tell(self.source.close, f"[source={self.name}] the source")


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
    with _naming("the source was opened", "LogSourcePlugin.create_source", where=name):
        return OpenSource(name, plugin, plugin.create_source(LogSourceConfig(name, typed)), origin)


@contextmanager
def _naming(doing: str, method: str, *, where: str) -> Iterator[None]:
    with (
        naming_storage_errors(doing, setting="the source's options"),
        naming_source_errors(method, where=where),
    ):
        yield
