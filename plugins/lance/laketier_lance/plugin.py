"""The entrance: found by the entry point ``lance`` of group ``laketier.formats``. Imports no Lance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from laketier.registry import hookimpl
from laketier.spi import (
    ConfigError,
    DeliveryLevel,
    Feature,
    LakeStorage,
    LakeStorageConfig,
    LakeStoragePlugin,
    Support,
    TableInfo,
)
from laketier_lance.features import FEATURES, FORMAT
from laketier_lance.location import normalise
from laketier_lance.options import LanceOptions


class LancePlugin(LakeStoragePlugin):
    """Lance datasets, through pylance."""

    identifier: ClassVar[str] = FORMAT
    spi_version: ClassVar[int] = 3
    delivery: ClassVar[DeliveryLevel] = DeliveryLevel.EXACTLY_ONCE
    features: ClassVar[Mapping[Feature, Support]] = FEATURES
    options_type: ClassVar[type] = LanceOptions

    def create_storage(self, config: LakeStorageConfig) -> LakeStorage:
        from laketier_lance.storage import LanceStorage

        options = config.options if isinstance(config.options, LanceOptions) else LanceOptions()
        if options.max_rows_per_group is not None:
            raise ConfigError(
                f"lake.lance.max-rows-per-group is {options.max_rows_per_group}",
                why="Lance's data files have had no row groups since version 2.0",
                fix="Remove it; lake.lance.data-cache-bytes sizes the pages.",
            )
        return LanceStorage(normalise(config.warehouse), options)

    def open_with(self, table: TableInfo) -> Mapping[str, str]:
        location = table.location
        return {
            "pylance": f"import lance; lance.dataset({location!r}).to_table()",
            "DuckDB": f"import duckdb, lance; rows = lance.dataset({location!r}).to_table(); duckdb.sql('from rows')",
            "Polars": f"import lance, polars; polars.from_arrow(lance.dataset({location!r}).to_table())",
        }


@hookimpl
def laketier_format() -> LakeStoragePlugin:
    """The plugin."""
    return LancePlugin()
