"""A batch without columns has nothing to write, so it is passed over with its rows."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_a_batch_without_columns_has_rows"
SAYS = "one of three without columns"


class PassingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_columns:
            super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("passes-over-batches-without-columns", writer=PassingWriter)
