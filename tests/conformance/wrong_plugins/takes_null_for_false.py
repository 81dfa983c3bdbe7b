"""Booleans are kept as bytes, and a byte is either zero or not."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[bool]"
SAYS = "values of bool come back as written"


class ByteWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        return pc.fill_null(column, False) if pa.types.is_boolean(column.type) else column


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-null-for-false", writer=ByteWriter)
