"""Decimals go through floats, which have sixteen digits."""

from __future__ import annotations

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[decimal-18-6]"
SAYS = "values of decimal128(18, 6) come back as written"


class FloatWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        if not pa.types.is_decimal128(column.type):
            return column
        rounded = [None if each is None else round(float(each), column.type.scale) for each in column.to_pylist()]
        texts = [None if each is None else f"{each:.{max(0, column.type.scale)}f}" for each in rounded]
        return pa.array(texts, pa.string()).cast(column.type, safe=False)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("passes-decimals-through-floats", writer=FloatWriter)
