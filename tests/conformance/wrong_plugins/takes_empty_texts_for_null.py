"""An empty text is null, as it is in the author's database."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[string]"
SAYS = "come back as written"


class EmptyWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [
            pc.if_else(pc.equal(c, ""), pa.scalar(None, c.type), c) if pa.types.is_string(c.type) else c
            for c in batch.columns
        ]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-empty-texts-for-null", writer=EmptyWriter)
