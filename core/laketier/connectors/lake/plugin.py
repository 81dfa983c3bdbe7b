"""The entry point: sources of type ``lake``."""

from __future__ import annotations

from typing import ClassVar

from laketier.connectors.lake.options import LakeLogOptions, LakeLogTableOptions
from laketier.registry import hookimpl
from laketier.spi import LogSource, LogSourceConfig, LogSourcePlugin


class LakeLogPlugin(LogSourcePlugin):
    """The tables of a lake of any format that can be read incrementally."""

    identifier: ClassVar[str] = "lake"
    spi_version: ClassVar[int] = 2
    options_type: ClassVar[type] = LakeLogOptions
    table_options_type: ClassVar[type] = LakeLogTableOptions

    def create_source(self, config: LogSourceConfig) -> LogSource:
        """See `LogSourcePlugin.create_source`. Raises also `PluginError`, and `FeatureNotSupported` for a format that
        can't be read incrementally."""
        from laketier.connectors.lake.source import LakeTables

        return LakeTables.of(config.name, config.options)


@hookimpl
def laketier_source() -> LogSourcePlugin:
    """Called once per process."""
    return LakeLogPlugin()
