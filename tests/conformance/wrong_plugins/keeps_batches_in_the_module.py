"""Batches of a table are collected in the module, and written when a task completes. Those of a task that failed are
there still when its worker gets the next one."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_executors.py::test_a_worker_outlives_what_it_knows"
SAYS = "after a task of it failed, and the next one was committed"

_COLLECTED: dict[str, list[pa.RecordBatch]] = {}


class CollectingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        _COLLECTED.setdefault(self._table.table_uuid, []).append(kit.conform(batch, self._table.schema))

    def complete(self) -> spi.WriteResult:
        for batch in _COLLECTED.pop(self._table.table_uuid, []):
            super().write(batch)
        return super().complete()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-batches-in-the-module", writer=CollectingWriter)
