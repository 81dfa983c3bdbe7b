"""The versions of the SPI: formats and sources have one each.

A version is raised when a plugin for the version before would no longer be right. An addition with a default that
refuses raises no version. laketier accepts a range, so a plugin keeps working while later versions only add to its own.
"""

from __future__ import annotations

FORMAT_SPI_VERSION = 3
"""The newest version for formats (`LakeStoragePlugin` and all that it makes)."""

FORMAT_SPI_VERSIONS = range(3, FORMAT_SPI_VERSION + 1)
"""The versions of formats that this laketier accepts."""

SOURCE_SPI_VERSION = 2
"""The newest version for sources (`LogSourcePlugin` and all that it makes)."""

SOURCE_SPI_VERSIONS = range(2, SOURCE_SPI_VERSION + 1)
"""The versions of sources that this laketier accepts."""

UNDECLARED = 1
"""The version of a plugin that names none. Version 1 had a default, which made each plugin one of the newest
version."""
