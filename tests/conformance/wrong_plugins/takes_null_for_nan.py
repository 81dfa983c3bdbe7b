"""A column of floats goes through NumPy, in which a number that is missing is NaN."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc
from changing import ChangingWriter
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_flat[float64]"
SAYS = "values of double come back as written"


class NumPyWriter(ChangingWriter):
    def change(self, column: pa.Array) -> pa.Array:
        return pc.fill_null(column, math.nan) if pa.types.is_float64(column.type) else column


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("takes-null-for-nan", writer=NumPyWriter)
