"""Opens a lake from its configuration."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from laketier.config import LakeConfig, from_spark_options, load_config, parse_options
from laketier.config.locations import absolute, absolute_database
from laketier.kit.storage_errors import naming_storage_errors
from laketier.kit.validation import ValidatingFactory
from laketier.registry.commands import naming_format
from laketier.registry.discovery import installed_formats, load_format
from laketier.spi import (
    ConfigError,
    Feature,
    LakeAdoption,
    LakeChanges,
    LakeFeed,
    LakeHistory,
    LakeIndexer,
    LakeMaintenance,
    LakeSearcher,
    LakeSource,
    LakeStorage,
    LakeStorageConfig,
    LakeStoragePlugin,
    LakeTieringFactory,
    Passthrough,
    PluginError,
    SchemaChange,
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
    """A warehouse, opened through the plugin of ``config.format``. Driver only.

    Attributes:
        config: The configuration.
        plugin: The plugin.
        storage: The storage that the plugin made.
    """

    config: LakeConfig
    plugin: LakeStoragePlugin
    storage: LakeStorage

    def load_table(self) -> TableInfo:
        """Load the table of the configuration as it is now.

        Raises:
            TableNotFound: There is no such table.
            TableError: The table can't be used.
            StorageError: The storage refused.
        """
        with naming_storage_errors("the table was loaded"):
            return self.storage.catalog().load_table(self.config.table)

    def alter_table(self, *changes: SchemaChange) -> TableInfo:
        """Change the configured table in one step, and load it. Raises as `LakeCatalog.alter_table`, and
        `StorageError`."""
        with naming_storage_errors("the table was changed"):
            return self.storage.catalog().alter_table(self.config.table, changes)

    def list_tables(self) -> list[TablePath]:
        """List the tables of the warehouse. Raises `StorageError` and `TableError`."""
        with naming_storage_errors("tables were listed"):
            return self.storage.catalog().list_tables()

    def tiering_factory(self, table: TableInfo) -> LakeTieringFactory[Any]:
        """Make the factory for rounds into ``table``. Raises `UnsafeTable`, `TableError` and `StorageError`."""
        with naming_storage_errors("the table was opened for writing"):
            return ValidatingFactory(self.storage.tiering_factory(table), self.config.validate_values)

    def state(self, table: TableInfo) -> TableState:
        """Read the state of ``table``, as old as ``table`` is. For readers. Raises `TableError` and `StorageError`."""
        with naming_storage_errors("the table was read"):
            return self.storage.state(table)

    def current_state(self) -> TableState:
        """Read the state of the configured table as it is now. Raises as `load_table` and `state`."""
        return self.state(self.load_table())

    def source(self, table: TableInfo) -> LakeSource:
        """Make the source that reads ``table``. Raises `TableError` and `StorageError`."""
        with naming_storage_errors("the table was opened for reading"):
            return self.storage.source(table)

    def history(self, table: TableInfo) -> LakeHistory:
        """The history of ``table``. Raises `FeatureNotSupported`, `TableError` and `StorageError`."""
        return self._capability(Feature.HISTORY, self.storage.history, table)

    def changes(self, table: TableInfo) -> LakeChanges:
        """The rows that commits appended to ``table``. Raises `FeatureNotSupported`, `TableError` and
        `StorageError`."""
        return self._capability(Feature.INCREMENTAL_READ, self.storage.changes, table)

    def feed(self, table: TableInfo) -> LakeFeed:
        """The change feed of ``table``. Raises `FeatureNotSupported`, `TableError`, `StorageError`, and `ConfigError`
        for a table without a feed."""
        return self._capability(Feature.CHANGE_FEED, self.storage.feed, table)

    def adoption(self) -> LakeAdoption:
        """What makes tables of files where they lie. Raises `FeatureNotSupported`."""
        with naming_format(self.config.format):
            require(self.config.format, self.plugin.features, Feature.ADOPTION)
            return self.storage.adoption()

    def maintenance(self, table: TableInfo) -> LakeMaintenance:
        """The maintenance of ``table``. Raises `FeatureNotSupported`, `TableError` and `StorageError`."""
        return self._capability(Feature.ORPHAN_COLLECTION, self.storage.maintenance, table)

    def indexer(self, table: TableInfo) -> LakeIndexer:
        """The secondary indexes of ``table``. Raises `FeatureNotSupported`, `TableError` and `StorageError`."""
        return self._capability(Feature.INDEXING, self.storage.indexer, table)

    def searcher(self, table: TableInfo) -> LakeSearcher:
        """What searches ``table`` for words and vectors. Raises `FeatureNotSupported`, `TableError` and `StorageError`,
        and `ConfigError` for ``lake.as-of``: a search takes a snapshot."""
        if self.config.as_of is not None:
            raise ConfigError(
                "a search does not take lake.as-of",
                fix="Give lake.snapshot-id; `laketier history` lists the snapshots.",
            )
        return self._capability(Feature.SEARCH, self.storage.searcher, table)

    def _capability(self, feature: Feature, made_by: Callable[[TableInfo], C], table: TableInfo) -> C:
        """Make a capability. Raises `FeatureNotSupported` with the plugin's declared reason, `TableError` and
        `StorageError`."""
        require(self.config.format, self.plugin.features, feature)
        with naming_format(self.config.format), naming_storage_errors(f"the {feature.value} of the table was opened"):
            return made_by(table)


def format_names() -> tuple[str, ...]:
    """The names of all installed formats. Imports nothing."""
    return tuple(dict.fromkeys(offer.name for offer in installed_formats()))


def configure(values: Mapping[str, Any] | None = None, *, base: str | None = None, **sources: Any) -> LakeConfig:
    """Read a configuration, as `laketier.config.load_config`, with the sections of all installed formats.

    Args:
        values: Keys and values, flat or nested.
        base: The folder from which relative locations start. None for this process's own.
        sources: Further arguments of `laketier.config.load_config`.

    Returns:
        The configuration, with absolute locations.

    Raises:
        ConfigError: A key is unknown, ill-typed or missing.
    """
    return _absolute(load_config(values, formats=format_names(), **sources), base)


def configure_spark(options: Mapping[str, str], **parse: Any) -> LakeConfig:
    """Read the options of Spark, as `laketier.config.from_spark_options`, with the sections of all installed formats.
    Raises `ConfigError`."""
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
    """Load the plugin, type its options, and open the warehouse. Driver.

    Args:
        config: The configuration.

    Returns:
        The lake.

    Raises:
        PluginError: The format is not installed, or can't be used.
        ConfigError: An option of the format is unknown or ill-typed, or options contradict each other.
    """
    plugin = load_format(config.format)
    options = parse_options(
        plugin.options_type, config.format_options, prefix=f"lake.{config.format}.", origin=config.origin
    )
    with naming_storage_errors("the warehouse was opened"):
        storage = plugin.create_storage(LakeStorageConfig(config.warehouse, options))
    return Lake(config, plugin, storage)
