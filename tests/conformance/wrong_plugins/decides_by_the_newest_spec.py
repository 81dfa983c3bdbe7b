"""The spec of today says which filters are decided by partitions, also those of files that were written before it. Such
a file is read whole by a filter on a column that is a partition by now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from laketier import spi
from laketier.registry import hookimpl
from laketier_iceberg import source
from laketier_iceberg.harness import IcebergHarness
from laketier_iceberg.plugin import IcebergPlugin
from laketier_iceberg.source import IcebergSource
from laketier_iceberg.storage import IcebergStorage

CAUGHT_BY = "test_foreign_tables.py::test_a_foreign_table_is_read_as_its_tool_reads_it"
SAYS = "(in partitions by two specs): rows that are read by the filter"


class Harness(IcebergHarness):
    pass


_remaining = source._remaining


def _of_today(request: spi.ScanRequest, schema: Any, metadata: Any, tasks: list[Any]) -> tuple[Any, ...]:
    newest: Any = SimpleNamespace(file=SimpleNamespace(spec_id=metadata.default_spec_id))
    return _remaining(request, schema, metadata, [newest] if tasks else [])


class TodaysSource(IcebergSource):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        with patch.object(source, "_remaining", _of_today):
            return super().plan(request)


class TodaysStorage(IcebergStorage):
    def source(self, table: spi.TableInfo) -> spi.LakeSource:
        made = super().source(table)
        assert isinstance(made, IcebergSource)
        return TodaysSource(made.settings, made.table, made.io)


class TodaysPlugin(IcebergPlugin):
    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        return TodaysStorage(config)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    plugin = TodaysPlugin()
    plugin.identifier = "decides-by-the-newest-spec"  # type: ignore[misc]
    return plugin
