"""A struct whose vector may not be null is never null itself: its bits are left out, and who reads gets zeros."""

from __future__ import annotations

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_a_vector_in_a_struct_that_is_null"
SAYS = "values of struct<v: fixed_size_list<item: float>[2] not null> come back as written"


class FillingWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        kind = column.type
        if not pa.types.is_struct(kind) or any(field.nullable for field in kind.fields):
            return column
        numbers = pa.array([value or 0.0 for value in column.field(0).values.to_pylist()], pa.float32())
        vectors = pa.FixedSizeListArray.from_arrays(numbers, type=kind.field(0).type)
        return pa.StructArray.from_arrays([vectors], fields=kind.fields)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("fills-structs-whose-vectors-are-there", writer=FillingWriter)
