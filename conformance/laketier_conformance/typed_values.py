"""Values of each type of Arrow: of flat types, nested ones and vectors."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

MOMENT = datetime(2026, 11, 21, 8, 30, 15, 123456)
NAN, INFINITY = float("nan"), float("inf")

FLAT: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [-128, 127]),
    "int16": (pa.int16(), [-(2**15), 2**15 - 1]),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, 0]),
    "uint8": (pa.uint8(), [0, 255]),
    "uint16": (pa.uint16(), [0, 2**16 - 1]),
    "uint32": (pa.uint32(), [0, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 2**64 - 1]),
    "float16": (pa.float16(), [0.5, -2.0, 0.333251953125, 65504.0]),
    "float32": (pa.float32(), [0.5, 1 + 2**-23, -0.0, INFINITY, NAN]),
    "float64": (pa.float64(), [0.1, 0.1 + 0.2, 1.7976931348623157e308, -0.0, -INFINITY, NAN, 5e-324]),
    "decimal-9-2": (pa.decimal128(9, 2), [Decimal("-1234567.89"), Decimal("0.01")]),
    "decimal-18-6": (pa.decimal128(18, 6), [Decimal("123456789012.345678")]),
    "decimal-38-10": (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0123456789")]),
    "decimal-38-0": (pa.decimal128(38, 0), [Decimal("-" + "9" * 38), Decimal(2**63), Decimal(0)]),
    "decimal-5-5": (pa.decimal128(5, 5), [Decimal("-0.00001"), Decimal("0.99999"), Decimal("0.00000")]),
    "decimal256": (pa.decimal256(60, 4), [Decimal("1" * 50 + ".0001")]),
    "string": (pa.string(), ["", "text", "ünïcödé 🦆"]),
    "large_string": (pa.large_string(), ["", "text"]),
    "string_view": (pa.string_view(), ["", "a text that is longer than twelve bytes"]),
    "binary": (pa.binary(), [b"", b"\x00\xff", b"\xff\x00", b"\x00", b" "]),
    "large_binary": (pa.large_binary(), [b"", b"\x00\xff"]),
    "fixed_binary": (pa.binary(4), [b"\x00\x01\x02\xff", b"\xff\x00\x00\x00"]),
    "date32": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)]),
    "date64": (pa.date64(), [date(2026, 11, 21)]),
    "time32-ms": (pa.time32("ms"), [time(23, 59, 59, 999000)]),
    "time64-us": (pa.time64("us"), [time(0, 0), time(23, 59, 59, 999999)]),
    "timestamp-s": (pa.timestamp("s"), [MOMENT.replace(microsecond=0)]),
    "timestamp-ms": (pa.timestamp("ms"), [MOMENT.replace(microsecond=123000)]),
    "timestamp-us": (pa.timestamp("us"), [MOMENT, datetime(1, 1, 1), datetime(9999, 12, 31)]),
    "timestamp-ns": (pa.timestamp("ns"), [1_795_249_815_123_456_789]),
    "timestamp-us-utc": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC)]),
    "timestamp-us-berlin": (pa.timestamp("us", "Europe/Berlin"), [MOMENT.replace(tzinfo=UTC)]),
    "duration": (pa.duration("us"), [timedelta(days=-1, microseconds=1)]),
    "null": (pa.null(), []),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "a"]),
    "uuid": (pa.uuid(), [bytes(16), bytes(range(16))]),
}
STRUCT = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])
BASIC = ("bool", "int32", "int64", "float32", "float64", "string", "binary", "date32", "timestamp-us", "decimal-18-6")

NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "list-of-int": (pa.list_(pa.int64()), [[], [1, None, 3], [None], [None, None]]),
    "list-of-string": (pa.list_(pa.string()), [["x", None, ""], []]),
    "struct": (STRUCT, [{"a": 1, "b": {"c": "x"}}, {"a": None, "b": None}, {"a": 2, "b": {"c": None}}]),
    "list-of-struct": (pa.list_(pa.struct([("a", pa.int64())])), [[{"a": 1}, None, {"a": None}], []]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None), ("A", 2), ("", 3)], []]),
    "struct-of-map": (
        pa.struct([("m", pa.map_(pa.string(), pa.int64()))]),
        [{"m": []}, {"m": None}, {"m": [("a", 1)]}],
    ),
    "list-of-moments": (pa.list_(pa.timestamp("us")), [[MOMENT, None, datetime(1969, 12, 31, 23, 59, 59, 999999)], []]),
    "struct-of-decimals": (
        pa.struct([("d", pa.decimal128(38, 18)), ("t", pa.date32()), ("b", pa.binary()), ("f", pa.bool_())]),
        [{"d": Decimal("12345678901234567890.123456789012345678"), "t": date(1, 1, 1), "b": b"\xff\x00", "f": False}],
    ),
    "list-of-list": (pa.list_(pa.list_(pa.float64())), [[[1.5, NAN, -0.0], [], None], []]),
}
VECTORS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "float32": (pa.list_(pa.float32(), 4), [[0.0, 1.5, -2.0, 4.0], [1.0, 2.0, 3.0, 4.0]]),
    "float64": (pa.list_(pa.float64(), 2), [[0.1, 0.2]]),
    "of-one": (pa.list_(pa.float32(), 1), [[0.5], [-1.0]]),
}
