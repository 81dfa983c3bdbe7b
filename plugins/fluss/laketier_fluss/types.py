"""Types of columns that Fluss's own do not say all of."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from laketier.spi import UnsupportedType

TIMESTAMP = pa.timestamp("ms", "UTC")


def refuse_nanoseconds(schema: pa.Schema, table: str) -> None:
    """Raises `UnsupportedType` for what reading row by row would cut off: Python's times end at microseconds."""
    for field in schema:
        if _has_nanoseconds(field.type):
            raise UnsupportedType(
                f"column {field.name!r} of type {field.type} can't be read row by row",
                where=table,
                why="the client tells changes and their times as Python's values, which have microseconds only",
                fix="Use timestamp(6) or time(6) at most in tables with a primary key, or leave include-timestamp out.",
            )


def _has_nanoseconds(kind: pa.DataType) -> bool:
    if pt.is_timestamp(kind) or pt.is_time64(kind):
        return bool(kind.unit == "ns")
    return any(_has_nanoseconds(kind.field(index).type) for index in range(kind.num_fields))
