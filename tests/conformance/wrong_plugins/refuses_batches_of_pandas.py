"""A batch's schema has to be the table's. What pandas notes in a schema's metadata makes it another one."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_batches_of_one_task_differ"
SAYS = "they fit the table's by name: expected no error"


class StrictWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        if batch.schema.metadata:
            raise spi.IncompatibleData("the schema is another one")
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("refuses-batches-of-pandas", writer=StrictWriter)
