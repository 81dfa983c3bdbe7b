"""The length of a list is a number of two bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_large_values.py::test_a_list_of_many_items"
SAYS = "as list<item: int64>: expected [70000, 1], found [65535, 1]"


class CuttingWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        return pc.list_slice(column, 0, 0xFFFF) if column.type == pa.list_(pa.int64()) else column


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("cuts-lists-at-65535-items", writer=CuttingWriter)
