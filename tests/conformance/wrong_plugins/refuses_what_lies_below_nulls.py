"""A field that is not null is asked for nulls by itself, also where the struct that has it is null."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl
from laketier.spi import IncompatibleData

CAUGHT_BY = "test_types.py::test_not_null_inside_of_a_type"
SAYS = "values with no null inside are written, and then nulls beside them: expected no error"


class HastyWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        for field, column in zip(batch.schema, batch.columns, strict=True):
            inner = list(field.type) if pt.is_struct(field.type) else []
            for number, child in enumerate(inner):
                if not child.nullable and column.field(number).null_count:
                    raise IncompatibleData(f"{field.name}.{child.name} has nulls, and is not null")
        super().write(batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("refuses-what-lies-below-nulls", writer=HastyWriter)
