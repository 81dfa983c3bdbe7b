"""From a configuration to an open lake."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from laketier.config import LakeConfig, from_spark_options, load_config, parse_options
from laketier.config.locations import absolute, absolute_database
from laketier.kit.storage_errors import naming_storage_errors
from laketier.registry.commands import naming_format
from laketier.registry.discovery import installed_formats, load_format
from laketier.spi import (
    Feature,
    LakeChanges,
    LakeFeed,
    LakeHistory,
    LakeIndexer,
    LakeMaintenance,
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
    require,
)
from laketier.spi.redaction import redacted

log = logging.getLogger(__name__)

C = TypeVar("C")


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

    def history(self, table: TableInfo) -> LakeHistory:
        """The snapshots of ``table``. Raises as `_capability` says."""
        return self._capability(Feature.HISTORY, self.storage.history, table)

    def changes(self, table: TableInfo) -> LakeChanges:
        """What commits appended to ``table``. Raises as `_capability` says."""
        return self._capability(Feature.INCREMENTAL_READ, self.storage.changes, table)

    def feed(self, table: TableInfo) -> LakeFeed:
        """What commits did to the rows of ``table``. Raises as `_capability` says, and `ConfigError` for a table
        without a feed."""
        return self._capability(Feature.CHANGE_FEED, self.storage.feed, table)

    def maintenance(self, table: TableInfo) -> LakeMaintenance:
        """What keeps ``table`` tidy. Raises as `_capability` says."""
        return self._capability(Feature.ORPHAN_COLLECTION, self.storage.maintenance, table)

    def indexer(self, table: TableInfo) -> LakeIndexer:
        """The secondary indexes of ``table``. Raises as `_capability` says."""
        return self._capability(Feature.INDEXING, self.storage.indexer, table)

    def _capability(self, feature: Feature, made_by: Callable[[TableInfo], C], table: TableInfo) -> C:
        """Raises `FeatureNotSupported` with the reason that the plugin declares, `TableError` and `StorageError`."""
        require(self.config.format, self.plugin.features, feature)
        with naming_format(self.config.format), naming_storage_errors(f"the {feature.value} of the table was opened"):
            return made_by(table)


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
