"""Config key → plugin, through pluggy entry points, lazily, by name; it may use `spi`, `kit` and `config`."""

from laketier.registry.commands import complete_commands, naming_commands, naming_format
from laketier.registry.discovery import installed_formats, installed_sources, load_format, load_source
from laketier.registry.groups import FORMATS, SOURCES, InstalledPlugin, hookimpl, hookspec
from laketier.registry.lake import Lake, configure, configure_spark, format_names, open_lake
from laketier.registry.log_source import OpenSource, open_log_source
from laketier.registry.makers import maker_of

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
    "maker_of",
    "naming_commands",
    "naming_format",
    "open_lake",
    "open_log_source",
]
