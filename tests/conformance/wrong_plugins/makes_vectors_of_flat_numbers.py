"""Vectors are made anew from all their numbers in a row, of which a vector that is null has none: those behind it get
the numbers of others."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_vectors[float32]"
SAYS = "values of fixed_size_list<item: float>[4] come back as written"


class FlatWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        kind = column.type
        if not pt.is_fixed_size_list(kind) or not pt.is_floating(kind.value_type) or not kind.list_size:
            return column
        numbers = column.flatten()
        short = len(column) * kind.list_size - len(numbers)
        padded = pa.concat_arrays([numbers, pa.array([0.0] * short, numbers.type)])
        return pa.FixedSizeListArray.from_arrays(padded, type=kind, mask=column.is_null())


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("makes-vectors-of-flat-numbers", writer=FlatWriter)
