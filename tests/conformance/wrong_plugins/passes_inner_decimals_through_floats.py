"""A column of decimals is kept as it is. One within a struct is written as a number of JSON would be."""

from __future__ import annotations

import pyarrow as pa
from crooked import CrookedPlugin
from within import within

from laketier.registry import hookimpl

CAUGHT_BY = "test_types.py::test_nested[struct-of-decimals]"
SAYS = "values of struct<d: decimal128(38, 18), t: date32[day], b: binary, f: bool> come back as written: expected"


def _rounded(values: pa.Array) -> pa.Array:
    return values.cast(pa.float64()).cast(values.type, safe=False) if pa.types.is_decimal(values.type) else values


@hookimpl
def laketier_format() -> CrookedPlugin:
    return within("passes-inner-decimals-through-floats", _rounded)
