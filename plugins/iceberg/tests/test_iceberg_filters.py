"""What becomes of a predicate in pyiceberg: the same rows, or more, and never one less."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.expressions.visitors import bind, expression_evaluator
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from laketier.spi import And, Leaf, Not, Op, Or, Predicate
from laketier_iceberg.filters import is_exact, is_positive, to_expression

KINDS = {
    "b": BooleanType(),
    "i": IntegerType(),
    "l": LongType(),
    "f": FloatType(),
    "d": DoubleType(),
    "n": DecimalType(9, 2),
    "s": StringType(),
    "y": BinaryType(),
    "x": FixedType(2),
    "t": TimeType(),
    "ts": TimestampType(),
    "tz": TimestamptzType(),
    "day": DateType(),
    "st": StructType(NestedField(100, "a", IntegerType())),
}
SCHEMA = Schema(*(NestedField(index, name, kind) for index, (name, kind) in enumerate(KINDS.items(), 1)))
NAIVE = dt.datetime(2026, 11, 26, 1, 2, 3, 4)
ZONED = NAIVE.replace(tzinfo=dt.timezone(dt.timedelta(hours=5)))
TAKEN: dict[str, list[Any]] = {
    "b": [True, False],
    "i": [0, 2**31 - 1, -(2**31)],
    "l": [2**63 - 1, -(2**63)],
    "f": [1, 0.5, -(2.0**127), 2**24],
    "d": [1, 0.1, math.inf, -1e300, 2**53],
    "n": [Decimal("1.25"), Decimal("-0.50")],
    "s": ["", "a"],
    "y": [b"", b"\xff"],
    "ts": [NAIVE],
    "tz": [ZONED],
    "day": [dt.date(2026, 11, 26)],
}
REFUSED: dict[str, list[Any]] = {
    "b": [1, "true"],
    "i": [2**31, -(2**31) - 1, True, 1.0, "1", Decimal(1)],
    "l": [2**63, -(2**63) - 1, False, 1.5],
    "f": [0.1, 3e38, 1e39, 2.0**127 * 1.5, -(2.0**127) * 1.5, math.inf, math.nan, 2**24 + 1, 10**400, True, "1"],
    "d": [math.nan, 2**53 + 1, 10**400, -(10**400), True, Decimal("0.5")],
    "n": [Decimal("1.2"), Decimal("1.250"), Decimal("NaN"), Decimal("Infinity"), 1, 1.25],
    "s": [b"a", 1],
    "y": ["a", 1],
    "x": [b"ab"],
    "t": [dt.time(1)],
    "ts": [ZONED, dt.date(2026, 11, 26), "2026-11-26"],
    "tz": [NAIVE, dt.date(2026, 11, 26)],
    "day": [NAIVE, ZONED, "2026-11-26"],
    "st": [1],
}
COMPARISONS = [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE]


def cases(given: dict[str, list[Any]]) -> list[Any]:
    return [pytest.param(name, value, id=f"{name}-{str(value)[:24]}") for name in given for value in given[name]]


@pytest.mark.parametrize(("name", "value"), cases(TAKEN))
def test_a_value_is_taken_as_it_is(name: str, value: Any) -> None:
    """Bound to the column, which is where pyiceberg would round it, or take it for one beyond the type."""
    for op in (Op.EQ, Op.IN):
        bound: Any = bind(SCHEMA, translated(Leaf(name, op, (value,) if op is Op.IN else value)), True)
        assert type(bound).__name__ == "BoundEqualTo"
        found = bound.literal.value
        match value:
            case dt.datetime():
                aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
                since = aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
                assert found == since // dt.timedelta(microseconds=1)
            case dt.date():
                assert found == (value - dt.date(1970, 1, 1)).days
            case _:
                assert (found, type(found) is bool) == (value, type(value) is bool)


@pytest.mark.parametrize(("name", "value"), cases(REFUSED))
def test_a_value_that_the_column_can_not_have_is_left_to_the_reader(name: str, value: Any) -> None:
    for op in COMPARISONS:
        assert to_expression(Leaf(name, op, value), SCHEMA) is None
        assert not is_exact(Leaf(name, op, value), SCHEMA)
    assert to_expression(Leaf(name, Op.IN, (value, None)), SCHEMA) is None


def translated(predicate: Predicate) -> Any:
    found = to_expression(predicate, SCHEMA)
    assert found is not None
    return found


def finds(predicate: Predicate, name: str, value: Any) -> bool:
    row = Record(*(value if each == name else None for each in KINDS))
    return bool(expression_evaluator(SCHEMA, translated(predicate), True)(row))


TEN = Leaf("i", Op.GE, 10)
ODD = Leaf("s", Op.EQ, 7)
"""Nothing of it can be told to pyiceberg."""


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        (Leaf("i", Op.EQ, 10), [10]),
        (Leaf("i", Op.NE, 10), [9, 11, None]),
        (Leaf("i", Op.LT, 10), [9]),
        (Leaf("i", Op.LE, 10), [9, 10]),
        (Leaf("i", Op.GT, 10), [11]),
        (TEN, [10, 11]),
        (Leaf("i", Op.IN, (9, None, 11)), [9, 11]),
        (Leaf("i", Op.IN, (None,)), []),
        (Leaf("i", Op.IN, ()), []),
        (Leaf("i", Op.IS_NULL), [None]),
        (Leaf("i", Op.NOT_NULL), [9, 10, 11]),
        (Not(Leaf("i", Op.EQ, 10)), [9, 11, None]),
        (Not(Leaf("i", Op.NE, 10)), [10]),
        (Not(Leaf("i", Op.LT, 10)), [10, 11]),
        (Not(Leaf("i", Op.LE, 10)), [11]),
        (Not(Leaf("i", Op.GT, 10)), [9, 10]),
        (Not(TEN), [9]),
        (Not(Leaf("i", Op.IS_NULL)), [9, 10, 11]),
        (Not(Leaf("i", Op.NOT_NULL)), [None]),
        (Not(Not(TEN)), [10, 11]),
        (And((TEN, Leaf("i", Op.LE, 10))), [10]),
        (Or((Leaf("i", Op.GT, 10), Leaf("i", Op.LT, 10))), [9, 11]),
        (Not(And((TEN, Leaf("i", Op.LE, 10)))), [9, 11]),
        (Not(Or((Leaf("i", Op.GT, 10), Leaf("i", Op.LT, 10)))), [10]),
        (And((TEN, ODD)), [10, 11]),
        (And((ODD, Leaf("i", Op.LE, 10))), [9, 10]),
        (Not(Or((TEN, ODD))), [9]),
    ],
    ids=str,
)
def test_rows_that_a_predicate_finds(predicate: Predicate, found: list[int | None]) -> None:
    assert [value for value in (9, 10, 11, None) if finds(predicate, "i", value)] == found


@pytest.mark.parametrize(
    "predicate",
    [
        ODD,
        Or((TEN, ODD)),
        Or((ODD, TEN)),
        And((ODD, ODD)),
        Not(ODD),
        Not(And((TEN, ODD))),
        Not(Leaf("i", Op.IN, (1, 2))),
        Not(Leaf("s", Op.STARTS_WITH, "a")),
        *(Not(Leaf(name, op, 0.0)) for name in ("f", "d") for op in (Op.LT, Op.LE, Op.GT, Op.GE)),
        Leaf("y", Op.STARTS_WITH, "a"),
        Leaf("st", Op.IS_NULL),
        Leaf("st", Op.NOT_NULL),
        Leaf("i", Op.EQ, None),
    ],
    ids=str,
)
def test_what_can_not_be_told_skips_nothing(predicate: Predicate) -> None:
    assert to_expression(predicate, SCHEMA) is None


def test_texts_begin_as_they_are_written() -> None:
    begins = Leaf("s", Op.STARTS_WITH, "ab")
    assert [value for value in ("ab", "abc", "aB", "a", None) if finds(begins, "s", value)] == ["ab", "abc"]


@pytest.mark.parametrize(
    ("predicate", "positive"),
    [
        (TEN, True),
        (Leaf("i", Op.NE, 1), False),
        (Leaf("i", Op.IS_NULL), True),
        (Not(TEN), False),
        (And((TEN, TEN)), True),
        (And((TEN, Leaf("i", Op.NE, 1))), False),
        (Or((Leaf("i", Op.NE, 1), TEN)), False),
        (Or((TEN, Not(TEN))), False),
    ],
    ids=str,
)
def test_where_a_null_may_be_found_that_sql_does_not_find(predicate: Predicate, positive: bool) -> None:
    assert is_positive(predicate) is positive


@pytest.mark.parametrize(
    ("predicate", "exact"),
    [
        (TEN, True),
        (ODD, False),
        (And((TEN, ODD)), False),
        (And((TEN, TEN)), True),
        (Or((ODD, TEN)), False),
        (Not(TEN), True),
        (Not(ODD), False),
        (Leaf("st", Op.IS_NULL), False),
    ],
    ids=str,
)
def test_whether_all_was_told(predicate: Predicate, exact: bool) -> None:
    assert is_exact(predicate, SCHEMA) is exact


@pytest.mark.parametrize("ask", [lambda it: to_expression(it, SCHEMA), is_positive, lambda it: is_exact(it, SCHEMA)])
def test_what_is_no_predicate_is_refused(ask: Any) -> None:
    with pytest.raises(TypeError, match="not a predicate: 'x'"):
        ask("x")
