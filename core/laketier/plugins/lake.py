"""From a configuration to an open lake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from laketier.config import LakeConfig, from_spark_options, load_config, parse_options
from laketier.plugins.discovery import installed_formats, load_format
from laketier.spi import LakeStorage, LakeStorageConfig, LakeStoragePlugin
from laketier.spi.storage_errors import naming_storage_errors


@dataclass(frozen=True)
class Lake:
    """A warehouse opened through the plugin that ``config.format`` names. Driver only."""

    config: LakeConfig
    plugin: LakeStoragePlugin
    storage: LakeStorage


def format_names() -> tuple[str, ...]:
    """The names of all installed formats; nothing is imported."""
    return tuple(dict.fromkeys(offer.name for offer in installed_formats()))


def configure(values: Mapping[str, Any] | None = None, **sources: Any) -> LakeConfig:
    """`laketier.config.load_config`, knowing which formats are installed."""
    return load_config(values, formats=format_names(), **sources)


def configure_spark(options: Mapping[str, str], **parse: Any) -> LakeConfig:
    """`laketier.config.from_spark_options`, knowing which formats are installed."""
    return from_spark_options(options, formats=format_names(), **parse)


def open_lake(config: LakeConfig) -> Lake:
    """Load the plugin, type its options, and open the warehouse. Raises `PluginError` and `ConfigError`."""
    plugin = load_format(config.format)
    options = parse_options(
        plugin.options_type, config.format_options, prefix=f"lake.{config.format}.", origin=config.origin
    )
    with naming_storage_errors("the warehouse was opened"):
        storage = plugin.create_storage(LakeStorageConfig(config.warehouse, options))
    return Lake(config, plugin, storage)
