"""The entrance: what the plugin can do. Importing this module does not import deltalake."""

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
from laketier_delta.features import FEATURES, FORMAT
from laketier_delta.options import DeltaOptions


class DeltaPlugin(LakeStoragePlugin):
    """Delta Lake through delta-rs."""

    identifier: ClassVar[str] = FORMAT
    spi_version: ClassVar[int] = 3
    delivery: ClassVar[DeliveryLevel] = DeliveryLevel.EXACTLY_ONCE
    options_type: ClassVar[type] = DeltaOptions
    features: ClassVar[Mapping[Feature, Support]] = FEATURES

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
