"""Columns by which rows lie in partitions and buckets, and what a split may tell of them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from laketier.kit.partition import partition_text
from laketier.spi import LakeSource, ScanPlan
from laketier_conformance.lake import read_split

DAY = datetime(2026, 11, 21, 8, 30, 0, 1)
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (
        pa.string(),
        ["a", "b", "a", None, "ä b", "x/y=z%", "..", "'q\"", "a+b c", "%20", "a\u0308 b", "A", "a "],
    ),
    "int": (pa.int32(), [1, -2, 1, 2**31 - 1, None]),
    "bigint": (pa.int64(), [-(2**63), 2**63 - 1, 0, None]),
    "bool": (pa.bool_(), [True, False, None, True]),
    "date": (pa.date32(), [date(2026, 11, 21), date(1969, 12, 31), date(1, 1, 1), None]),
    "timestamp": (pa.timestamp("us"), [DAY, datetime(1969, 12, 31, 23, 59, 59, 999999), None]),
    "decimal": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-0.01"), None]),
}
REFUSABLE = ("bool", "timestamp", "decimal")
FUNCTIONS = ("fluss", "iceberg", "paimon", "hudi")
SPELLED = ("string", "int", "bigint", "date", "bool")
"""Those that each format spells alike in a split."""


def rows_by(kind: pa.DataType, values: list[Any]) -> pa.RecordBatch:
    schema = pa.schema([("id", pa.int64()), ("key", kind), ("payload", pa.string())])
    return pa.record_batch(
        [pa.array(range(len(values))), pa.array(values, kind), pa.array([f"p{i}" for i in range(len(values))])],
        schema=schema,
    )


def spelled_as_they_are(source: LakeSource, plan: ScanPlan) -> None:
    """A split may be told apart by its partition without being read."""
    for split in plan.splits:
        keys = {value for rows in read_split(source, split, plan.schema) for value in rows["key"].to_pylist()}
        spelled = {partition_text(key) for key in keys}
        told = dict(split.partition)
        assert "key" not in told or spelled <= {told["key"]}, (
            f"the partition that a split tells is that of its rows: expected {spelled}, found {told['key']!r}"
        )
