"""Bytes go through an array of NumPy, which takes zeros at the end for the rest of its room."""

from __future__ import annotations

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[binary]"
SAYS = "values of binary come back as written"


class RoomyWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        if not pa.types.is_binary(column.type):
            return column
        return pa.array([None if each is None else each.rstrip(b"\0") for each in column.to_pylist()], column.type)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("ends-bytes-at-zeros", writer=RoomyWriter)
