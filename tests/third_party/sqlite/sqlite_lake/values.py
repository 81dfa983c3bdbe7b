"""Arrow's values as SQLite keeps them, exactly. SQLite would make NaN a null, so NaN is kept as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier import spi

_WHOLE = (pt.is_boolean, pt.is_date, pt.is_time, pt.is_timestamp, pt.is_duration)
_AS_IS = (pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary, pt.is_fixed_size_binary)


def _is_whole(kind: pa.DataType) -> bool:
    return (pt.is_integer(kind) and not pt.is_uint64(kind)) or any(test(kind) for test in _WHOLE)


def check_types(schema: pa.Schema) -> None:
    """Raise `UnsupportedType` for what SQLite can't hold exactly."""
    for field in schema:
        kind = field.type
        held = _is_whole(kind) or pt.is_floating(kind) or pt.is_decimal(kind) or any(test(kind) for test in _AS_IS)
        if not held:
            raise spi.UnsupportedType(
                f"SQLite can't hold column {field.name!r}, which is {kind}",
                fix="Cast it in the query: uint64 to decimal(20, 0), nested columns to JSON text.",
            )


def to_sql(column: pa.Array) -> list[Any]:
    """The values of a column, for a statement."""
    kind = column.type
    if _is_whole(kind):
        narrow = kind.bit_width == 32 and not pt.is_integer(kind)
        return (column.cast(pa.int32()) if narrow else column).cast(pa.int64()).to_pylist()
    values = column.to_pylist()
    if pt.is_floating(kind):
        return ["nan" if value is not None and math.isnan(value) else value for value in values]
    return [None if value is None else str(value) for value in values] if pt.is_decimal(kind) else values


def to_arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of what a query gave."""
    if _is_whole(kind):
        whole = pa.array(values, pa.int64())
        return (whole.cast(pa.int32()) if kind.bit_width == 32 and not pt.is_integer(kind) else whole).cast(kind)
    if pt.is_floating(kind):
        return pa.array([None if value is None else float(value) for value in values], pa.float64()).cast(kind)
    if pt.is_decimal(kind):
        return pa.array([None if value is None else Decimal(value) for value in values], kind)
    return pa.array(values, kind)
