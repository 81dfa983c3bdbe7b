"""A column of text or bytes has a length of three bytes, and the database cuts what is longer."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_large_values.py::test_values_of_many_bytes"
SAYS = "the bytes that are read of a value of 16777220 bytes as string: expected [16777220, 5], found [16777215, 5]"
MOST = (1 << 24) - 1


class CuttingWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        if column.type not in (pa.string(), pa.binary()):
            return column
        return pc.binary_slice(column.cast(pa.binary()), 0, MOST)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("cuts-values-at-16-mib", writer=CuttingWriter)
