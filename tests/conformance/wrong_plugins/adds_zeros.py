"""A number is added to nothing before it is written, which makes a zero of minus zero."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[float64]"
SAYS = "come back as written"


class AddingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [pc.add(c, pa.scalar(0.0, c.type)) if pa.types.is_float64(c.type) else c for c in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("adds-zeros", writer=AddingWriter)
