"""The groups of entry points by which plugins are found, with their hooks."""

from __future__ import annotations

from dataclasses import dataclass

import pluggy

from laketier.spi import FORMAT_SPI_VERSIONS, SOURCE_SPI_VERSIONS, LakeStoragePlugin, LogSourcePlugin

PROJECT = "laketier"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class FormatHooks:
    """The hooks of a format's plugin module."""

    @hookspec(firstresult=True)
    def laketier_format(self) -> LakeStoragePlugin | None:
        """Return the format. Called once per process. It must be cheap and import no engine."""


class SourceHooks:
    """The hooks of a source's plugin module."""

    @hookspec(firstresult=True)
    def laketier_source(self) -> LogSourcePlugin | None:
        """Return the kind of source. Called once per process. It must be cheap and import no client library."""


@dataclass(frozen=True)
class PluginGroup:
    """A group of entry points. The name of an entry point is the plugin's identifier, its value the module with the
    hook."""

    name: str
    hook: str
    hooks: type
    kind: type
    noun: str
    key: str
    """The setting by which the user named the plugin."""
    versions: range
    """The accepted versions of the SPI."""
    guide: str
    """The page that tells how the versions differ."""


FORMATS = PluginGroup(
    "laketier.formats",
    "laketier_format",
    FormatHooks,
    LakeStoragePlugin,
    "format",
    "lake.format = {name!r}",
    FORMAT_SPI_VERSIONS,
    "docs/authors/guide.md",
)
SOURCES = PluginGroup(
    "laketier.sources",
    "laketier_source",
    SourceHooks,
    LogSourcePlugin,
    "source",
    "a source of type {name!r}",
    SOURCE_SPI_VERSIONS,
    "docs/authors/sources.md",
)


@dataclass(frozen=True)
class InstalledPlugin:
    """A format or source of an installed distribution. Not imported yet."""

    name: str
    distribution: str
    version: str
    module: str
    group: PluginGroup

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution} {self.version})"
