"""Columns of a batch are found by name. Those inside of a struct are taken in their order."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_fields_of_structs_go_by_name[in-another-order]"
SAYS = "a batch that has its fields in another order"


class PlacingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        for at, field in enumerate(batch.schema):
            place = self._table.schema.get_field_index(field.name)
            if place >= 0:
                column = placed(batch.column(at), self._table.schema.field(place).type)
                batch = batch.set_column(at, field.with_type(column.type), column)
        super().write(batch)


def placed(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    kind = column.type
    if not (pa.types.is_struct(wanted) and pa.types.is_struct(kind) and wanted.num_fields == kind.num_fields):
        return column
    parts = [placed(part, field.type) for part, field in zip(column.flatten(), wanted.fields, strict=True)]
    fields = [field.with_type(part.type) for part, field in zip(parts, wanted.fields, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=column.is_null())


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("takes-fields-by-place", writer=PlacingWriter)
