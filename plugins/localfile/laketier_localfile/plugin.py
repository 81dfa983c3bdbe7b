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

        if "laketier.partitions-in-names" in table.descriptor.properties:  # then files do not hold them, or not all
            files = f"{table.location}/**/*.parquet"
            return {
                "DuckDB": f"import duckdb; duckdb.read_parquet({files!r}, hive_partitioning=True, union_by_name=True)",
                "Polars": "import glob, polars; polars.concat([polars.scan_parquet(file, hive_partitioning=True) "
                f"for file in glob.glob({files!r}, recursive=True)], how='diagonal_relaxed').collect()",
                "Spark": f"spark.read.option('mergeSchema', True).parquet({table.location!r})",
            }
        return of_table(table.descriptor.properties, where=table.location).open_with(table.location, table.schema)


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    """The hook."""
    return LocalFilePlugin()
