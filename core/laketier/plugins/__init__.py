"""Config key → plugin, through pluggy entry points, lazily, by name."""

from laketier.plugins.discovery import (
    GROUP,
    InstalledFormat,
    hookimpl,
    hookspec,
    installed_formats,
    load_format,
)
from laketier.plugins.lake import Lake, configure, configure_spark, format_names, open_lake

__all__ = [
    "GROUP",
    "InstalledFormat",
    "Lake",
    "configure",
    "configure_spark",
    "format_names",
    "hookimpl",
    "hookspec",
    "installed_formats",
    "load_format",
    "open_lake",
]
