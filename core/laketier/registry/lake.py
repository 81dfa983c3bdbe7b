"""From a configuration to an open lake."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from laketier.config import LakeConfig, from_spark_options, load_config, parse_options
from laketier.config.locations import absolute, absolute_database
from laketier.kit.storage_errors import naming_storage_errors
from laketier.registry.discovery import installed_formats, load_format
from laketier.spi import (
    LakeSource,
    LakeStorage,
    LakeStorageConfig,
    LakeStoragePlugin,
    LakeTieringFactory,
    Passthrough,
    PluginError,
    TableInfo,
    TablePath,
    TableState,
)
from laketier.spi.redaction import redacted

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lake:
    """A warehouse opened through the plugin that ``config.format`` names. Driver only."""

    config: LakeConfig
    plugin: LakeStoragePlugin
    storage: LakeStorage

    def load_table(self) -> TableInfo:
        """The table that ``config`` names, as it is now. Raises `TableNotFound`, `TableError` and `StorageError`."""
        with naming_storage_errors("the table was loaded"):
            return self.storage.catalog().load_table(self.config.table)

    def list_tables(self) -> list[TablePath]:
        """The tables of the warehouse. Raises `StorageError` and `TableError`."""
        with naming_storage_errors("tables were listed"):
            return self.storage.catalog().list_tables()

    def tiering_factory(self, table: TableInfo) -> LakeTieringFactory[Any]:
        """The factory for rounds into ``table``. Raises `UnsafeTable`, `TableError` and `StorageError`."""
        with naming_storage_errors("the table was opened for writing"):
            return self.storage.tiering_factory(table)

    def state(self, table: TableInfo) -> TableState:
        """What readers may know of ``table``, as old as that is. Raises `TableError` and `StorageError`."""
        with naming_storage_errors("the table was read"):
            return self.storage.state(table)

    def current_state(self) -> TableState:
        """`state` of the table that ``config`` names, as it is now. Raises also as `load_table`."""
        return self.state(self.load_table())

    def source(self, table: TableInfo) -> LakeSource:
        """The source that reads ``table``. Raises `TableError` and `StorageError`."""
        with naming_storage_errors("the table was opened for reading"):
            return self.storage.source(table)


def format_names() -> tuple[str, ...]:
    """The names of all installed formats; nothing is imported."""
    return tuple(dict.fromkeys(offer.name for offer in installed_formats()))


def configure(values: Mapping[str, Any] | None = None, *, base: str | None = None, **sources: Any) -> LakeConfig:
    """`laketier.config.load_config`, knowing which formats are installed; what is relative in it is made absolute, from
    the folder ``base`` (this process's own by default)."""
    return _absolute(load_config(values, formats=format_names(), **sources), base)


def configure_spark(options: Mapping[str, str], **parse: Any) -> LakeConfig:
    """`laketier.config.from_spark_options`, as `configure`."""
    return _absolute(from_spark_options(options, formats=format_names(), **parse), None)


def _absolute(config: LakeConfig, base: str | None) -> LakeConfig:
    """Locations go on to processes that work in other folders, so they are made absolute here, once, and said."""
    if not config.warehouse:
        return config
    try:
        is_location = load_format(config.format).warehouse_is_location(config.warehouse, config.format_options)
    except PluginError:
        return config  # whoever opens the lake says it
    warehouse = absolute(config.warehouse, base) if is_location else config.warehouse
    options = {key: absolute_database(value, base) for key, value in config.format_options.items()}
    if warehouse != config.warehouse:
        log.info("lake.warehouse = %s is %s", redacted(config.warehouse), redacted(warehouse))
    return replace(config, warehouse=warehouse, format_options=Passthrough(options))


def open_lake(config: LakeConfig) -> Lake:
    """Load the plugin, type its options, and open the warehouse. Raises `PluginError` and `ConfigError`."""
    plugin = load_format(config.format)
    options = parse_options(
        plugin.options_type, config.format_options, prefix=f"lake.{config.format}.", origin=config.origin
    )
    with naming_storage_errors("the warehouse was opened"):
        storage = plugin.create_storage(LakeStorageConfig(config.warehouse, options))
    return Lake(config, plugin, storage)
