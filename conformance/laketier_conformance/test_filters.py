"""Filters on each type: what a plan skips, takes or leaves to the reader never changes which rows are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import Leaf, Not, Op, Predicate, ScanRequest, UnsupportedType, to_arrow
from laketier_conformance.expect import expect
from laketier_conformance.lake import Lake, finished, read_plan, token

MOMENT = datetime(2026, 11, 21, 8, 30, 15, 123456)
LONG = "a" * 40

# In order, so that files of neighbours hold ranges apart. Minima and maxima that a format cuts, rounds or leaves out
# are where rows get lost.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [False, False, True, True]),
    "int8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "int16": (pa.int16(), [-(2**15), -1, 0, 2**15 - 1]),
    "int32": (pa.int32(), [-(2**31), -1, 0, 1, 2**31 - 1]),
    "int64": (pa.int64(), [-(2**63), -(2**53) - 1, 0, 2**53, 2**53 + 1, 2**63 - 1]),
    "uint8": (pa.uint8(), [0, 127, 128, 255]),
    "uint32": (pa.uint32(), [0, 2**31 - 1, 2**31, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 2**32, 2**63 - 1, 2**63, 2**64 - 1]),
    "float32": (pa.float32(), [-1.5, -0.0, 0.0, 0.5, 16777216.0]),
    "float64": (pa.float64(), [-1e300, -5e-324, 0.1, 0.30000000000000004, 1e300]),
    "decimal-9-2": (pa.decimal128(9, 2), [Decimal(text) for text in ("-1234567.89", "-0.01", "0.00", "9999999.99")]),
    "decimal-38-10": (pa.decimal128(38, 10), [Decimal("-1" + "0" * 27), Decimal("1E-10"), Decimal("9" * 28)]),
    "text": (
        pa.string(),
        [
            "",
            " ",
            "A",
            LONG[:16],
            LONG,
            LONG + "b",
            "a" * 15 + "\U0010ffff",
            "a" * 5000,
            "b\x00",
            "z",
            "é",
            "\U0001f986",
        ],
    ),
    "large-text": (pa.large_string(), ["", LONG, LONG + "b", "\ud7ff" * 20, "\uffff" * 20, "\U0010ffff" * 20]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x7f" * 20, b"\x80", b"\xff" * 16, b"\xff" * 40]),
    "date32": (
        pa.date32(),
        [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
    ),
    "time64": (pa.time64("us"), [time(0, 0), time(0, 0, 0, 1), time(23, 59, 59, 999999)]),
    "timestamp-ms": (pa.timestamp("ms"), [MOMENT.replace(microsecond=us) for us in (0, 122000, 123000, 999000)]),
    "timestamp-us": (
        pa.timestamp("us"),
        [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), MOMENT, MOMENT + timedelta(microseconds=1)],
    ),
    "timestamp-us-utc": (
        pa.timestamp("us", "UTC"),
        [datetime(1900, 1, 1, tzinfo=UTC), MOMENT.replace(tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)],
    ),
    "timestamp-us-new-york": (
        pa.timestamp("us", "America/New_York"),
        [
            datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
            datetime(2026, 11, 1, 6, 30, tzinfo=UTC),
            MOMENT.replace(tzinfo=UTC),
        ],
    ),
}
COMPARED = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)


@pytest.mark.parametrize("name", VALUES)
def test_filters_on_each_type(lake: Lake, name: str) -> None:
    """By each value and its neighbours, on files whose ranges are apart, on one that has them all, and on one of
    nulls."""
    kind, values = VALUES[name]
    schema = pa.schema([("id", pa.int64()), ("v", kind)])
    try:
        table = lake.create(schema, "db.filtered")
    except UnsupportedType:
        return
    half = (len(values) + 1) // 2
    everything = []
    for epoch, part in enumerate((values[:half], values[half:], [*values, None], [None, None])):
        ids = [epoch * 100 + i for i in range(len(part))]
        rows = pa.record_batch([pa.array(ids, pa.int64()), pa.array(part, kind)], schema=schema)
        table.publish_arrow([rows], token(epoch))
        everything.append(rows)
    plain = table.read()
    expect(
        sorted(plain["id"].to_pylist()),
        sorted(pa.Table.from_batches(everything)["id"].to_pylist()),
        "rows of the plain scan",
    )
    source = table.source
    for predicate in _predicates(values):
        plan = source.plan(ScanRequest(filters=(predicate,)))
        found = sorted(finished(read_plan(source, plan), plan, None)["id"].to_pylist())
        expected = sorted(plain.filter(to_arrow(predicate, schema))["id"].to_pylist())
        expect(found, expected, f"rows of {predicate} on {kind}, as the plain scan has them")


def _predicates(values: Sequence[Any]) -> Iterator[Predicate]:
    literals = list(dict.fromkeys([*values, *_neighbours(values)]))
    own = len(dict.fromkeys(values))
    for number, literal in enumerate(literals):
        # With a neighbour two of the operators: each takes its turn.
        yield from (Leaf("v", op, literal) for op in (COMPARED if number < own else COMPARED[number % 3 :: 3]))
        if isinstance(literal, str):
            yield Leaf("v", Op.STARTS_WITH, literal)
    yield Leaf("v", Op.IN, (values[0], values[-1]))
    yield Leaf("v", Op.IN, (values[0], None))
    yield Not(Leaf("v", Op.IN, (values[0], values[-1])))
    yield Not(Leaf("v", Op.LT, values[-1]))
    yield Leaf("v", Op.IS_NULL)
    yield Leaf("v", Op.NOT_NULL)


def _neighbours(values: Sequence[Any]) -> Iterator[Any]:
    """Literals that no row has, close to those that some have."""
    for value in values:
        if isinstance(value, str) and len(value) > 10:
            yield value[:20] + "!"
        elif isinstance(value, bytes) and len(value) > 10:
            yield value + b"\x00"
        elif type(value) is int:
            yield from (value - 1, value + 1)  # beyond the least and the greatest: no value of the column's type
