"""A decimal without a scale is a whole number, and is written as any number is that has no digits behind the point."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[decimal-38-0]"
SAYS = "values of decimal128(38, 0) come back as written"


class FloatingWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        if not pa.types.is_decimal(column.type) or column.type.scale:
            return column
        numbers = [None if value is None else Decimal(int(float(value))) for value in column.to_pylist()]
        return pa.array(numbers, column.type)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("passes-whole-decimals-through-floats", writer=FloatingWriter)
