"""The source ``fluss``."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from laketier.registry import hookimpl
from laketier.spi import LogSource, LogSourceConfig, LogSourcePlugin, PluginBroken
from laketier_fluss.options import FlussOptions, FlussTableOptions

_NOT_BUILT_FOR = (3, 13)
_BUILD = " For this version of Python pip has to build it, and needs Rust. Python 3.12 needs no build."


class FlussPlugin(LogSourcePlugin):
    """The tables of an Apache Fluss cluster."""

    identifier = "fluss"
    spi_version = 2
    options_type = FlussOptions
    table_options_type = FlussTableOptions

    def create_source(self, config: LogSourceConfig) -> LogSource:
        """Raises `ConfigError` for options that do not fit, and `PluginBroken` without the client. Asks no server."""
        if find_spec("fluss") is None:
            raise PluginBroken(
                "the source fluss needs the client pyfluss, and it is not installed",
                where=config.name,
                fix=f"Install it: `pip install pyfluss`.{_BUILD if sys.version_info >= _NOT_BUILT_FOR else ''}",
            )
        from laketier_fluss.source import FlussSource

        return FlussSource.create(config)


_PLUGIN = FlussPlugin()


@hookimpl
def laketier_source() -> LogSourcePlugin:
    """See `laketier.registry.groups.SourceHooks`."""
    return _PLUGIN
