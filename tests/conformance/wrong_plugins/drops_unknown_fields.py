"""A column that the table does not have is refused. A field of a struct that it does not have is left out."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_values.py::test_fields_of_structs_go_by_name[with-one-more]"
SAYS = "a struct that has its fields with one more is refused"


class DroppingWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        for at, field in enumerate(batch.schema):
            place = self._table.schema.get_field_index(field.name)
            if place >= 0:
                column = known(batch.column(at), self._table.schema.field(place).type)
                batch = batch.set_column(at, field.with_type(column.type), column)
        super().write(batch)


def known(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if not (pa.types.is_struct(wanted) and pa.types.is_struct(column.type)):
        return column
    kept = [field for field in column.type.fields if field.name in wanted.names]
    parts = [column.flatten()[column.type.get_field_index(field.name)] for field in kept]
    return pa.StructArray.from_arrays(parts, fields=kept, mask=column.is_null()) if kept else column


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("drops-unknown-fields", writer=DroppingWriter)
