"""A struct is written field by field. That the struct itself was null is not kept."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_nested[struct]"
SAYS = "come back as written"


def by_fields(array: pa.Array) -> pa.Array:
    if not pa.types.is_struct(array.type) or not array.type.num_fields:
        return array
    return pa.StructArray.from_arrays(array.flatten(), fields=list(array.type))


class FlatteningWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        columns = [by_fields(column) for column in batch.columns]
        super().write(pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("forgets-nulls-of-structs", writer=FlatteningWriter)
