"""Doubles are taken for a column of floats, as both are numbers: 0.1 comes back as another one."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_a_smaller_type_that_fits_is_taken"
SAYS = "a double that was taken for a column of floats, which has not it: expected [0.1], found [0.10000000149011612]"


class RoundingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        for at, field in enumerate(batch.schema):
            wanted = self._table.schema.field(field.name) if field.name in self._table.schema.names else field
            if pa.types.is_float64(field.type) and pa.types.is_float32(wanted.type):
                batch = batch.set_column(at, field.name, batch.column(at).cast(wanted.type))
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("rounds-doubles-to-floats", writer=RoundingWriter)
