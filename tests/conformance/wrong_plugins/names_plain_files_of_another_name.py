"""A file of before a rename is told as plain Parquet, as it has as many columns as the table, of the same types."""

from __future__ import annotations

from dataclasses import replace

from laketier import spi
from laketier.registry import hookimpl
from laketier_iceberg.plugin import IcebergPlugin
from laketier_iceberg.source import IcebergSource
from laketier_iceberg.storage import IcebergStorage

CAUGHT_BY = "test_source.py::test_plain_parquet_of_before_a_change[renamed]"
SAYS = "columns of the plain Parquet file of a split, after a column was renamed"


class NamingSource(IcebergSource):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        plan = super().plan(request)
        return replace(plan, splits=tuple(replace(split, plain_parquet=split.files[0]) for split in plan.splits))


class NamingStorage(IcebergStorage):
    def source(self, table: spi.TableInfo) -> spi.LakeSource:
        made = super().source(table)
        assert isinstance(made, IcebergSource)
        return NamingSource(made.settings, made.table, made.io)


class NamingPlugin(IcebergPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        return NamingStorage(config)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    plugin = NamingPlugin()
    plugin.identifier = "names-plain-files-of-another-name"  # type: ignore[misc]
    return plugin
