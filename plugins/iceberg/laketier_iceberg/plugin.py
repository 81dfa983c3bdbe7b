"""The entrance: what `lake.format = iceberg` means. Importing it does not import pyiceberg."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from laketier.plugins import hookimpl
from laketier.spi import (
    FULL,
    DeliveryLevel,
    Feature,
    LakeStorage,
    LakeStorageConfig,
    LakeStoragePlugin,
    Support,
    TableInfo,
    unsupported,
)
from laketier_iceberg.options import IcebergOptions


class IcebergPlugin(LakeStoragePlugin):
    """Apache Iceberg, version 2 tables, through pyiceberg."""

    identifier: ClassVar[str] = "iceberg"
    delivery: ClassVar[DeliveryLevel] = DeliveryLevel.EXACTLY_ONCE
    options_type: ClassVar[type] = IcebergOptions
    features: ClassVar[Mapping[Feature, Support]] = {
        Feature.OVERWRITE: FULL,
        Feature.UPSERT: unsupported("merging by primary key is not built yet"),
        Feature.PARTITIONING: FULL,
        Feature.PARTITION_TRANSFORMS: FULL,
        Feature.BUCKETING: FULL,
        Feature.ADD_COLUMN: FULL,
        Feature.DROP_TABLE: FULL,
        Feature.TIME_TRAVEL: FULL,
        Feature.TIME_TRAVEL_BY_TIMESTAMP: FULL,
        Feature.FILTER_PUSHDOWN: FULL,
        Feature.LIMIT_PUSHDOWN: FULL,
        Feature.PLAIN_PARQUET: FULL,
        Feature.OBJECT_STORES: FULL,
        Feature.ROLLBACK_DETECTION: FULL,
        Feature.NESTED_TYPES: FULL,
        Feature.VECTORS: unsupported("Iceberg's list forgets the length of its Arrow type; Lance keeps it"),
        Feature.INDEXING: unsupported("Iceberg has no secondary indexes"),
        Feature.ORPHAN_COLLECTION: FULL,
    }

    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        """Touches nothing yet. Raises `ConfigError` for a remote warehouse without a catalog."""
        from laketier_iceberg.storage import IcebergStorage

        return IcebergStorage(config)

    def open_with(self, table: TableInfo) -> Mapping[str, str]:
        """Lines for people. The embedded catalog is a SQLite file, which Spark's JDBC catalog can read too."""
        from laketier_iceberg.opening import open_with

        return open_with(table)


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    """The plugin."""
    return IcebergPlugin()
