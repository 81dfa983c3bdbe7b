"""The fourth batch of a task never reaches a file."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_rounds.py::test_every_row_is_there_with_its_values"
SAYS = "rows of three tasks with several batches each: expected 84 rows, found 63; 21 are missing: [300,"


class LosingWriter(Writer):
    batches = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self.batches += 1
        if self.batches != 4:
            super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("loses-a-batch", writer=LosingWriter)
