"""The fields of structs in a list are written one by one. That an item itself is null is in none of them."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_nested[list-of-struct]"
SAYS = "come back as written: expected [\"[{'a': 1}, None, {'a': None}]\""


class FieldsWriter(Writer):
    def write(self, batch: pa.RecordBatch) -> None:
        batch = kit.conform(batch, self._table.schema)
        super().write(pa.RecordBatch.from_arrays(list(map(_apart, batch.columns)), schema=batch.schema))


def _apart(column: pa.Array) -> pa.Array:
    kind = column.type
    if not pa.types.is_list(kind) or not pa.types.is_struct(kind.value_type):
        return column
    items = column.values
    fields = [items.field(number) for number in range(items.type.num_fields)]
    structs = pa.StructArray.from_arrays(fields, fields=list(items.type))
    return pa.ListArray.from_arrays(column.offsets, structs, type=kind, mask=column.is_null())


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("forgets-nulls-among-items", writer=FieldsWriter)
