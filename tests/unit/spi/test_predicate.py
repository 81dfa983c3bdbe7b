from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi import And, DataclassSerializer, Leaf, Not, Op, Or, Predicate, columns_of, to_arrow

NAN = float("nan")
TABLE = pa.table({"n": pa.array([1, 2, None, 4]), "s": ["ab", None, "b", "abc"], "f": [1.0, NAN, None, -1.0]})


@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        (Leaf("n", Op.EQ, 2), [1]),
        (Leaf("n", Op.NE, 2), [0, 3]),
        (Leaf("n", Op.LT, 2), [0]),
        (Leaf("n", Op.LE, 2), [0, 1]),
        (Leaf("n", Op.GT, 2), [3]),
        (Leaf("n", Op.GE, 2), [1, 3]),
        (Leaf("n", Op.IN, (1, 4, None)), [0, 3]),
        (Leaf("n", Op.IN, ()), []),
        (Leaf("s", Op.IN, ()), []),
        (Leaf("s", Op.IN, (None,)), []),
        (Not(Leaf("s", Op.IN, ())), [0, 1, 2, 3]),
        (Not(Leaf("s", Op.IN, (None,))), []),
        (Leaf("n", Op.IS_NULL), [2]),
        (Leaf("n", Op.NOT_NULL), [0, 1, 3]),
        (Leaf("s", Op.STARTS_WITH, "ab"), [0, 3]),
        (Leaf("f", Op.IS_NULL), [2]),
        (Leaf("f", Op.LT, 0.0), [3]),
        (Not(Leaf("n", Op.EQ, 2)), [0, 3]),
        (Not(Leaf("n", Op.IN, (1, 4))), [1]),
        (Not(Leaf("n", Op.IN, (1, None))), []),
        (Not(Not(Leaf("n", Op.IN, (1, None)))), [0]),
        (Not(Leaf("s", Op.IN, ("b",))), [0, 3]),
        (Not(Leaf("f", Op.IN, (1.0,))), [1, 3]),
        (Not(Leaf("n", Op.IN, ())), [0, 1, 2, 3]),
        (Leaf("f", Op.EQ, NAN), []),
        (Leaf("f", Op.IN, (NAN, 1.0)), [0]),
        (Leaf("n", Op.IN, (NAN, Decimal("NaN"), 1)), [0]),
        (Not(Leaf("f", Op.EQ, NAN)), [0, 1, 3]),
        (Not(Leaf("f", Op.IN, (NAN, 1.0))), [1, 3]),
        (Not(And((Leaf("n", Op.IN, (1, 4)), Leaf("n", Op.NOT_NULL)))), [1, 2]),
        (And((Leaf("n", Op.GE, 1), Leaf("s", Op.NOT_NULL))), [0, 3]),
        (Or((Leaf("n", Op.EQ, 1), Leaf("s", Op.EQ, "b"))), [0, 2]),
    ],
    ids=str,
)
def test_null_is_not_true(predicate: Predicate, rows: list[int]) -> None:
    numbered = TABLE.append_column("row", pa.array(range(4)))
    assert numbered.filter(to_arrow(predicate))["row"].to_pylist() == rows
    assert numbered.filter(to_arrow(predicate, TABLE.schema))["row"].to_pylist() == rows


def test_columns() -> None:
    tree = And((Leaf("a", Op.IS_NULL), Or((Not(Leaf("b", Op.EQ, 1)), Leaf("a", Op.EQ, 2)))))
    assert columns_of([tree, Leaf("c", Op.NOT_NULL)]) == {"a", "b", "c"}


def test_a_leaf_travels() -> None:
    serializer = DataclassSerializer(Leaf)
    leaf = Leaf("a", Op.EQ, "x")
    assert serializer.deserialize(1, serializer.serialize(leaf)) == leaf


SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
BIG = 10**40
NUMBERS = {
    **{
        str(kind): (kind, [low, 0, 5, high - 1, high])
        for kind, low, high in (
            *((kind, -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1) for kind in SIGNED),
            *((kind, 0, 2**kind.bit_width - 1) for kind in UNSIGNED),
        )
    },
    **{
        str(kind): (kind, [Decimal(text) for text in texts])
        for kind, texts in (
            (pa.decimal128(20, 0), ("-1", "5", "18446744073709551615", "99999999999999999999")),
            (pa.decimal128(9, 2), ("-9999999.99", "0.00", "5.00", "5.01", "9999999.99")),
            (pa.decimal128(38, 10), ("0.0000000001", "5", "9999999999999999999999999999.9999999999")),
            (pa.decimal128(5, -2), ("500", "9999900")),
        )
    },
    "float": (pa.float32(), [-0.0, 5.0, 2.0**24, 3e38, math.inf]),
    "double": (pa.float64(), [-math.inf, -0.0, 5.0, 2.0**53, 2.0**63, 1e300, math.inf, NAN]),
}
WHOLE = [0, -1, 5, 255, 256, 2**24 + 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, BIG, -BIG, 10**400, -(10**400)]
PARTS: list[float | Decimal] = [
    *(5.5, 5.0, -0.5, 1e300, 2.0**63, math.inf, -math.inf),
    *map(Decimal, ("5.005", "5.01", "1E-30", "-1E-999999", "1E+999999", "18446744073709551615.5", "Infinity")),
]
COMPARED = {Op.EQ: eq, Op.NE: ne, Op.LT: lt, Op.LE: le, Op.GT: gt, Op.GE: ge}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_compare_exactly_whatever_the_type_of_the_column(name: str) -> None:
    """As Python compares them, which knows no width of a number. Null stays null."""
    kind, values = NUMBERS[name]
    table = pa.table({"v": pa.array([*values, None], kind)})
    read = table["v"].to_pylist()
    literals = [*WHOLE, *(() if pa.types.is_floating(kind) else PARTS)]

    def kept(predicate: Predicate) -> list[Any]:
        return list(map(repr, table.filter(to_arrow(predicate, table.schema))["v"].to_pylist()))

    for literal in literals:
        for op, compares in COMPARED.items():
            expected = [value for value in read if value is not None and compares(value, literal)]
            others = [value for value in read if value is not None and not compares(value, literal)]
            assert kept(Leaf("v", op, literal)) == list(map(repr, expected)), f"v {op.value} {literal!r}"
            assert kept(Not(Leaf("v", op, literal))) == list(map(repr, others)), f"not v {op.value} {literal!r}"
    among = [value for value in read if value is not None and value in literals]
    assert kept(Leaf("v", Op.IN, (*literals, None))) == list(map(repr, among))
    assert kept(Not(Leaf("v", Op.IN, tuple(literals)))) == [
        repr(value) for value in read if value is not None and value not in literals
    ]


EAST = timezone(timedelta(hours=5, minutes=30))


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"], ids=str)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_compare_exactly_whatever_the_unit_and_the_zone_of_the_column(unit: str, zone: str | None) -> None:
    """Also beyond the years that the unit has. Null stays null."""
    kind, at = pa.timestamp(unit, zone), None if zone is None else UTC
    values = [datetime(1969, 12, 31, 23, 59, 59, tzinfo=at), datetime(2024, 1, 1, tzinfo=at)]
    table = pa.table({"v": pa.array([*values, None], kind), "row": range(3)})
    literals = [each + timedelta(microseconds=by) for each in values for by in (-1, 0, 1, 500_000)]
    literals += [datetime(2, 1, 1, tzinfo=at), datetime(9998, 12, 31, 1, 1, 1, 1, tzinfo=at)]
    literals = literals if zone is None else [each.astimezone(EAST) for each in literals]

    def kept(predicate: Predicate) -> list[int]:
        return table.filter(to_arrow(predicate, table.schema))["row"].to_pylist()

    for literal in literals:
        for op, compares in COMPARED.items():
            expected = [row for row, value in enumerate(values) if compares(value, literal)]
            assert kept(Leaf("v", op, literal)) == expected, f"v {op.value} {literal!r}"
            assert kept(Not(Leaf("v", op, literal))) == [row for row in (0, 1) if row not in expected]
    assert kept(Leaf("v", Op.IN, (*literals, None))) == [0, 1]
    assert kept(Leaf("v", Op.IN, (literals[0], literals[-1]))) == []


@pytest.mark.parametrize("kind", [And, Or])
def test_the_children_of_children_of_the_same_kind(kind: type[And | Or]) -> None:
    a, b, c = (Leaf(name, Op.NOT_NULL) for name in "abc")
    other = Or if kind is And else And
    assert kind((a, kind((b, kind((c,)))))).children == (a, b, c)
    assert kind((a, other((b, c)))).children == (a, other((b, c)))
    assert kind((kind(()), a)).children == (a,)
    assert kind([a, b]) == kind((a, b))  # type: ignore[arg-type]
    assert kind(each for each in (a, kind((b,)))) == kind((a, b))  # type: ignore[arg-type]
    assert hash(kind([a])) == hash(kind((a,)))  # type: ignore[arg-type]


@pytest.mark.parametrize("zone", [None, "UTC", "+02:00"])
def test_a_day_beside_moments_is_its_first_one_by_utc(zone: str | None) -> None:
    """Arrow made days of the moments of a list that began with a day, and found the first moment of each."""
    at = None if zone is None else UTC
    day, noon = datetime(2024, 1, 1, tzinfo=at), datetime(2024, 1, 2, 12, tzinfo=at)
    rows = pa.table({"t": pa.array([day, noon.replace(hour=0), noon], pa.timestamp("us", zone))})

    def found(op: Op, value: Any) -> list[int]:
        kept = rows.append_column("row", pa.array([0, 1, 2])).filter(to_arrow(Leaf("t", op, value), rows.schema))
        return list(kept["row"].to_pylist())

    assert found(Op.IN, (date(2024, 1, 1), noon)) == found(Op.IN, (noon, date(2024, 1, 1))) == [0, 2]
    assert [found(op, date(2024, 1, 2)) for op in (Op.EQ, Op.LT, Op.GE)] == [[1], [0], [1, 2]]
