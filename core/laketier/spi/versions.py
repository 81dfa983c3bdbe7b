"""The versions of the SPI: formats and sources have one each.

A version is raised when a plugin written for the one before would no longer be right. What is added with a default that
refuses needs none. A range is accepted, so a plugin goes on working while the versions after its own only add to it.
"""

from __future__ import annotations

FORMAT_SPI_VERSION = 3
"""The newest version of what a format implements (`LakeStoragePlugin` and all that it makes)."""

FORMAT_SPI_VERSIONS = range(3, FORMAT_SPI_VERSION + 1)
"""The versions of formats that this laketier accepts."""

SOURCE_SPI_VERSION = 2
"""The newest version of what a source implements (`LogSourcePlugin` and all that it makes)."""

SOURCE_SPI_VERSIONS = range(2, SOURCE_SPI_VERSION + 1)
"""The versions of sources that this laketier accepts."""

UNDECLARED = 1
"""The version of a plugin that names none. Version 1 had a default, which made each plugin one of the newest."""
