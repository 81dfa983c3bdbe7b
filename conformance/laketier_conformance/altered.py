"""Columns that get a wider type or another name, and values for them before and after."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from laketier.spi import RenameColumn, WidenColumn

NARROW = pa.schema(
    [("id", pa.int64()), ("count", pa.int32()), ("ratio", pa.float32()), ("price", pa.decimal128(10, 2))]
)
WIDE = {"count": pa.int64(), "ratio": pa.float64(), "price": pa.decimal128(18, 2)}
WIDEN = [WidenColumn(name, kind) for name, kind in WIDE.items()]
RENAME = [RenameColumn("name", "title")]
TENTH = 0.10000000149011612
"""The float of 32 bits that is called 0.1, as a double, of which 0.1 is another one."""
SMALL: dict[str, list[Any]] = {
    "id": [1, 2, 3],
    "count": [7, None, -5],
    "ratio": [TENTH, 0.25, None],
    "price": [Decimal("1.25"), None, Decimal("-3.00")],
}
LARGE: dict[str, list[Any]] = {
    "id": [4, 5],
    "count": [2**40, -(2**40)],
    "ratio": [0.1, None],
    "price": [Decimal("9999999999999.99"), None],
}
