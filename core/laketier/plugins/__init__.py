"""Config key → plugin, through pluggy entry points, lazily, by name."""

from laketier.plugins.commands import complete_commands, naming_commands
from laketier.plugins.discovery import (
    FORMATS,
    SOURCES,
    InstalledPlugin,
    hookimpl,
    hookspec,
    installed_formats,
    installed_sources,
    load_format,
    load_source,
)
from laketier.plugins.lake import Lake, configure, configure_spark, format_names, open_lake
from laketier.plugins.log_source import OpenSource, open_log_source

__all__ = [
    "FORMATS",
    "SOURCES",
    "InstalledPlugin",
    "Lake",
    "OpenSource",
    "complete_commands",
    "configure",
    "configure_spark",
    "format_names",
    "hookimpl",
    "hookspec",
    "installed_formats",
    "installed_sources",
    "load_format",
    "load_source",
    "naming_commands",
    "open_lake",
    "open_log_source",
]
