"""Columns are found by their names, and fields of structs by their names in small letters."""

from __future__ import annotations

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_large_values.py::test_fields_whose_names_differ_by_case"
SAYS = "the fields of a struct whose names differ by case"


class FoldingWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        kind = column.type
        if not pa.types.is_struct(kind) or column.offset:
            return column
        first = {field.name.lower(): at for at, field in reversed(list(enumerate(kind)))}
        parts = [column.field(first[field.name.lower()]).cast(field.type) for field in kind]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("folds-names-of-fields", writer=FoldingWriter)
