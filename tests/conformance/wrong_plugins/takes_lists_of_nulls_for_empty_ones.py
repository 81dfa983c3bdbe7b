"""A list in which there is nothing but nulls is written as one in which there is nothing."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_nested[list-of-int]"
SAYS = "values of list<item: int64> come back as written: expected ['[]', 'None', '[1, None, 3]', '[None]'"


class SparingWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        if not pt.is_list(column.type):
            return column
        lists = [[] if value and all(item is None for item in value) else value for value in column.to_pylist()]
        return pa.array(lists, column.type)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-lists-of-nulls-for-empty-ones", writer=SparingWriter)
