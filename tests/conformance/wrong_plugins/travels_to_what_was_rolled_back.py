"""A moment has the newest of all snapshots that are not younger, also one that a rollback took out of the history."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from laketier import spi
from laketier.registry import hookimpl
from laketier_iceberg import harness
from laketier_iceberg.plugin import IcebergPlugin
from laketier_iceberg.source import IcebergSource

CAUGHT_BY = "test_time_travel.py::test_a_moment_after_a_rollback"
SAYS = "rows as of a moment after a table was taken back to an older snapshot: expected"


class Harness(harness.IcebergHarness):
    pass


def _newest_of_all(table: Any, moment: int) -> Any:
    found = [each for each in table.metadata.snapshots if each.timestamp_ms <= moment]
    return max(found, key=lambda each: each.timestamp_ms, default=None)


class Source(IcebergSource):
    def plan(self, request: spi.ScanRequest) -> spi.ScanPlan:
        with patch("pyiceberg.table.Table.snapshot_as_of_timestamp", _newest_of_all):
            return super().plan(request)


class Plugin(IcebergPlugin):
    def __init__(self) -> None:
        self.identifier = "travels-to-what-was-rolled-back"  # type: ignore[misc]

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        source = storage.source
        storage.source = lambda table: Source(**vars(source(table)))
        return storage  # type: ignore[no-any-return]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin()
