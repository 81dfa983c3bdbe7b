"""The last batch of each attempt is kept for messages, by the attempt. A process lives for months."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_leaves_nothing_open"
SAYS = "batches in memory that nobody needs after 5 more rounds"


class KeepingWriter(Writer):
    last: ClassVar[dict[str, pa.RecordBatch]] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        self.last[self._attempt] = batch
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("keeps-the-last-batch-of-each-attempt", writer=KeepingWriter)
