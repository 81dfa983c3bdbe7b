"""The entrance: what the plugin can do. Importing this module does not import deltalake."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
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
from laketier_delta.options import DeltaOptions


class DeltaPlugin(LakeStoragePlugin):
    """Delta Lake through delta-rs."""

    identifier: ClassVar[str] = "delta"
    delivery: ClassVar[DeliveryLevel] = DeliveryLevel.EXACTLY_ONCE
    options_type: ClassVar[type] = DeltaOptions
    features: ClassVar[Mapping[Feature, Support]] = MappingProxyType(
        {
            Feature.OVERWRITE: FULL,
            Feature.UPSERT: unsupported("merging by key is not built yet"),
            Feature.PARTITIONING: FULL,
            Feature.PARTITION_TRANSFORMS: unsupported("Delta partitions by the values of columns only"),
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
            Feature.VECTORS: unsupported("Delta arrays have no fixed size"),
            Feature.INDEXING: unsupported("Delta has no secondary indexes that delta-rs can build"),
            Feature.ORPHAN_COLLECTION: FULL,
        }
    )

    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        from laketier_delta.location import Location
        from laketier_delta.storage import DeltaStorage

        options = config.options if isinstance(config.options, DeltaOptions) else DeltaOptions()
        return DeltaStorage(Location.of(config.warehouse, options.storage), options)

    def open_with(self, table: TableInfo) -> Mapping[str, str]:
        where = repr(table.location)
        return {
            "deltalake": f"import deltalake; deltalake.DeltaTable({where}).to_pyarrow_table()",
            "Polars": f"import polars; polars.read_delta({where})",
            "DuckDB": f"import deltalake, duckdb; duckdb.from_arrow(deltalake.DeltaTable({where}).to_pyarrow_table())",
            "Spark": f'spark.read.format("delta").load({where})',
        }


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    """The hook that the entry point leads to."""
    return DeltaPlugin()
