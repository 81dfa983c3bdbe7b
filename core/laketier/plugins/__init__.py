"""Config key → plugin, through pluggy entry points, lazily, by name."""

from laketier.plugins.discovery import (
    GROUP,
    InstalledFormat,
    hookimpl,
    hookspec,
    installed_formats,
    load_format,
)

__all__ = ["GROUP", "InstalledFormat", "hookimpl", "hookspec", "installed_formats", "load_format"]
