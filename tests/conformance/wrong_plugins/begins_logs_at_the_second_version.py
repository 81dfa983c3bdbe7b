"""The first version makes a table, so a log begins behind it. Another tool makes tables that have rows."""

from __future__ import annotations

from typing import Any

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.changes import LanceChanges
from laketier_lance.harness import LanceHarness
from laketier_lance.options import LanceOptions
from laketier_lance.plugin import LancePlugin

CAUGHT_BY = "test_foreign_tables.py::test_a_foreign_table_as_a_log"
SAYS = "rows that it has, and that a log of all its versions lacks"


class Changes(LanceChanges):
    def plan(self, start: int, end: int, *, skip_changes: bool = False) -> spi.ScanPlan:
        return super().plan(max(start, min(end, 2)), end, skip_changes=skip_changes)


class Plugin(LancePlugin):
    def __init__(self) -> None:
        self.identifier = "begins-logs-at-the-second-version"  # type: ignore[misc]

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        storage.changes = lambda table: Changes(table, LanceOptions())
        return storage  # type: ignore[no-any-return]


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin()
