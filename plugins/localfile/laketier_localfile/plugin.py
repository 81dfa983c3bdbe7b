"""The entrance: what the entry point ``laketier.formats`` names."""

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
from laketier_localfile.features import FEATURES, IDENTIFIER
from laketier_localfile.names import FILE_FORMAT, PARQUET
from laketier_localfile.options import LocalFileOptions


class LocalFilePlugin(LakeStoragePlugin):
    """Plain files in Hive-style folders, published an epoch at a time."""

    identifier: ClassVar[str] = IDENTIFIER
    spi_version: ClassVar[int] = 3
    delivery: ClassVar[DeliveryLevel] = DeliveryLevel.EXACTLY_ONCE
    features: ClassVar[Mapping[Feature, Support]] = FEATURES
    options_type: ClassVar[type] = LocalFileOptions

    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        from laketier_localfile.storage import LocalFileStorage

        return LocalFileStorage(config)

    def open_with(self, table: TableInfo) -> Mapping[str, str]:
        from laketier_localfile.file_formats.known import of_table
        from laketier_localfile.open_folders import open_folders
        from laketier_localfile.outside import IN_NAMES, OUTSIDE

        if table.location.startswith("s3://"):
            return _open_in_s3(table, in_names=not table.descriptor.properties.keys().isdisjoint({IN_NAMES, OUTSIDE}))
        if not table.descriptor.properties.keys().isdisjoint({IN_NAMES, OUTSIDE}):
            return open_folders(table)
        return of_table(table.descriptor.properties, where=table.location).open_with(table.location, table.schema)


def _open_in_s3(table: TableInfo, *, in_names: bool) -> Mapping[str, str]:
    """Readers that list a bucket by a pattern. They take endpoint, region and keys from the environment (``AWS_…``), or
    as ``storage_options``."""
    if table.descriptor.properties.get(FILE_FORMAT, PARQUET) != PARQUET:
        return {}
    files = f"{table.location}/**/*.parquet"
    return {
        "Polars": f"import polars; polars.scan_parquet({files!r}, hive_partitioning={in_names}, "
        "missing_columns='insert', extra_columns='ignore').collect()"
    }


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    """The hook."""
    return LocalFilePlugin()
