"""The format of `crooked` with options, which its writers and its sources have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crooked import CrookedFactory, CrookedPlugin, CrookedStorage
from feather_lake.plugin import Source, Writer

from laketier import spi


@dataclass(frozen=True)
class OptionedFactory(CrookedFactory):
    options: Any = None

    def create_writer(self, context: spi.WriterInitContext) -> Writer:
        writer = super().create_writer(context)
        writer.options = self.options  # type: ignore[attr-defined]
        return writer


@dataclass(frozen=True)
class OptionedStorage(CrookedStorage):
    options: Any = None

    def tiering_factory(self, table: spi.TableInfo) -> CrookedFactory:
        return OptionedFactory(table, self.parts, self.options)

    def source(self, table: spi.TableInfo) -> Source:
        source = super().source(table)
        object.__setattr__(source, "options", self.options)
        return source


class OptionedPlugin(CrookedPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return OptionedStorage(Path(config.warehouse), self._parts, config.options)


def optioned(identifier: str, options: type, **parts: Any) -> CrookedPlugin:
    """A plugin with options of its own, one of its parts replaced."""
    plugin = OptionedPlugin(identifier, **parts)
    plugin.options_type = options  # type: ignore[misc]
    return plugin
