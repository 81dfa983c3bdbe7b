"""A vector that is null is written as zeros, as an index would have it."""

from __future__ import annotations

import pyarrow as pa
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_vectors[float32]"
SAYS = "values of fixed_size_list<item: float>[4] come back as written"


class FillingWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        if not pa.types.is_fixed_size_list(column.type):
            return column
        zeros = [0] * column.type.list_size
        return pa.array([zeros if each is None else each for each in column.to_pylist()], column.type)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("fills-vectors-that-are-null", writer=FillingWriter)
