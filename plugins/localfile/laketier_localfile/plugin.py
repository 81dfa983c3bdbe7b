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
    """Plain Parquet files in Hive-style folders, published an epoch at a time."""

    identifier: ClassVar[str] = IDENTIFIER
    spi_version: ClassVar[int] = 3
    delivery: ClassVar[DeliveryLevel] = DeliveryLevel.EXACTLY_ONCE
    features: ClassVar[Mapping[Feature, Support]] = FEATURES
    options_type: ClassVar[type] = LocalFileOptions

    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        from laketier_localfile.storage import LocalFileStorage

        return LocalFileStorage(config)

    def open_with(self, table: TableInfo) -> Mapping[str, str]:
        # Partition columns are in the files with their types, so no reader needs to guess them from folder names.
        files = f"{table.location}/**/*.parquet"
        return {
            "DuckDB": f"import duckdb; duckdb.read_parquet({files!r}, hive_partitioning=False, union_by_name=True)",
            # Readers that take the first file's schema for all would lose, or choke on, columns that were added
            # or widened later.
            "Polars": "import glob, polars; polars.concat([polars.scan_parquet(file, hive_partitioning=False) "
            f"for file in glob.glob({files!r}, recursive=True)], how='diagonal_relaxed').collect()",
            "Spark": "spark.read.option('recursiveFileLookup', True).option('mergeSchema', True)"
            f".parquet({table.location!r})",
        }


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    """The hook."""
    return LocalFilePlugin()
