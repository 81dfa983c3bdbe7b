"""Which type holds all values of another."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laketier.spi import widens


@pytest.mark.parametrize(
    ("old", "new", "wider"),
    [
        (pa.int8(), pa.int16(), True),
        (pa.int32(), pa.int64(), True),
        (pa.uint8(), pa.int16(), True),
        (pa.uint32(), pa.uint64(), True),
        (pa.uint32(), pa.int32(), False),
        (pa.int32(), pa.uint64(), False),
        (pa.int64(), pa.int32(), False),
        (pa.int64(), pa.int64(), False),
        (pa.int32(), pa.float64(), False),
        (pa.float32(), pa.float64(), True),
        (pa.float64(), pa.float32(), False),
        (pa.decimal128(10, 2), pa.decimal128(11, 2), True),
        (pa.decimal128(10, 2), pa.decimal256(50, 2), True),
        (pa.decimal128(10, 2), pa.decimal128(12, 3), False),
        (pa.decimal128(10, 2), pa.decimal128(9, 2), False),
        (pa.string(), pa.large_string(), False),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), False),
    ],
    ids=str,
)
def test_wider_types(old: pa.DataType, new: pa.DataType, wider: bool) -> None:
    assert widens(old, new) is wider
