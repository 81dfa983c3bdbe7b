"""The entrance: what `lake.format = iceberg` means. Importing it does not import pyiceberg."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from laketier.registry import hookimpl
from laketier.spi import (
    DeliveryLevel,
    Feature,
    LakeStorage,
    LakeStorageConfig,
    LakeStoragePlugin,
    Support,
    TableInfo,
)
from laketier_iceberg.features import FEATURES
from laketier_iceberg.options import IcebergOptions


class IcebergPlugin(LakeStoragePlugin):
    """Apache Iceberg, version 2 tables, through pyiceberg."""

    identifier: ClassVar[str] = "iceberg"
    spi_version: ClassVar[int] = 3
    delivery: ClassVar[DeliveryLevel] = DeliveryLevel.EXACTLY_ONCE
    options_type: ClassVar[type] = IcebergOptions
    features: ClassVar[Mapping[Feature, Support]] = FEATURES

    def warehouse_is_location(self, warehouse: str, options: Mapping[str, str]) -> bool:
        """With a catalog of one's own it may be a name, except where the catalog is nothing but a database."""
        if not any(key.startswith("catalog") for key in options):
            return True
        uri = options.get("catalog.uri", "")
        return options.get("catalog.type") in ("sql", "in-memory") or uri.startswith(("sqlite", "postgresql"))

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
