"""Which type holds all values of another, and which schemas are the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import schema_fingerprint, widens
from laketier.spi.schema import FIELD_ID


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
        (pa.decimal128(10, 2), pa.decimal128(10, 2), False),
        (pa.decimal128(10, 2), pa.int64(), False),
        (pa.int32(), pa.decimal128(20, 0), False),
        (pa.float32(), pa.decimal128(20, 0), False),
        (pa.float32(), pa.float32(), False),
        (pa.float16(), pa.int32(), False),
        (pa.int8(), pa.float32(), False),
        (pa.int8(), pa.string(), False),
        (pa.uint8(), pa.string(), False),
        (pa.uint8(), pa.float64(), False),
        (pa.float32(), pa.int64(), False),
        (pa.string(), pa.int8(), False),
        (pa.uint8(), pa.int8(), False),
        (pa.uint8(), pa.uint16(), True),
        (pa.int16(), pa.uint32(), False),
        (pa.string(), pa.large_string(), False),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), False),
    ],
    ids=str,
)
def test_wider_types(old: pa.DataType, new: pa.DataType, wider: bool) -> None:
    assert widens(old, new) is wider


LIST = pa.list_(pa.field("element", pa.string()))


def _of(kind: pa.DataType, **field: Any) -> str:
    return schema_fingerprint(pa.schema([pa.field("c", kind, **field)]))


def test_a_fingerprint_is_for_ever() -> None:
    """Staged files carry it, also those of another release."""
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", LIST)])
    schema = pa.schema(
        [pa.field("a", pa.int64(), metadata={FIELD_ID: b"1"}), pa.field("b", pa.map_(pa.string(), inner)), ("ö", inner)]
    )
    assert schema_fingerprint(schema) == "d746ef06e2aa3e94"


def test_what_differs_at_any_depth_has_another_fingerprint() -> None:
    int32, text = pa.int32(), pa.string()
    kinds = [
        int32,
        text,
        *(make(kind) for make in (pa.list_, pa.large_list) for kind in (int32, text)),
        *(pa.list_(kind, size) for kind in (int32, text) for size in (2, 3)),
        *(pa.map_(key, value) for key in (int32, text) for value in (int32, text)),
        *(pa.struct([(name, kind)]) for name in "xy" for kind in (int32, text)),
        pa.struct([pa.field("x", int32, nullable=False)]),
        pa.struct([pa.field("x", int32, metadata={FIELD_ID: b"7"})]),
        pa.list_(pa.field("element", int32)),
    ]
    found = {_of(kind) for kind in kinds}
    found |= {_of(int32, nullable=False), _of(int32, metadata={FIELD_ID: b"7"}), _of(int32, metadata={FIELD_ID: b"8"})}
    assert len(found) == len(kinds) + 3
    deep = set()
    for number in (b"7", b"8"):
        child = pa.field("element", int32, metadata={FIELD_ID: number})
        deep |= {_of(kind) for kind in (pa.list_(child), pa.large_list(child), pa.list_(child, 2))}
    assert len(deep) == 6
    assert _of(int32) == _of(int32, metadata={b"comment": b"x"})
    pairs = [[("a", int32), ("b", text)], [("b", text), ("a", int32)]]
    assert len({schema_fingerprint(pa.schema(pair)) for pair in pairs}) == 2
    flat = pa.schema([("a", pa.struct([("b", int32), ("c", int32)]))])
    side = pa.schema([("a", pa.struct([("b", int32)])), ("c", int32)])
    assert schema_fingerprint(flat) != schema_fingerprint(side)
