"""The entry point: sources of type ``files``."""

from __future__ import annotations

from typing import ClassVar

from laketier.connectors.files.options import LandingOptions, LandingTableOptions
from laketier.registry import hookimpl
from laketier.spi import LogSource, LogSourceConfig, LogSourcePlugin


class LandingPlugin(LogSourcePlugin):
    """Files that others put into a folder."""

    identifier: ClassVar[str] = "files"
    spi_version: ClassVar[int] = 2
    options_type: ClassVar[type] = LandingOptions
    table_options_type: ClassVar[type] = LandingTableOptions

    def create_source(self, config: LogSourceConfig) -> LogSource:
        """See `LogSourcePlugin.create_source`. Raises `FeatureNotSupported` for a location that can't be opened."""
        from laketier.connectors.files.source import LandingZone

        return LandingZone(config.name, config.options)


@hookimpl
def laketier_source() -> LogSourcePlugin:
    """Called once per process."""
    return LandingPlugin()
