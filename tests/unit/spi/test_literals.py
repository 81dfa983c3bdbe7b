"""The neighbours of numbers in the types of columns, against what the numbers themselves say."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from laketier.spi.literals import members_of, neighbours

HUGE = Decimal("1E+200")
TINY = Decimal("1E-200")
INTEGERS = (pa.int8(), pa.uint8(), pa.int64(), pa.uint64())
DECIMALS = (pa.decimal128(3, -2), pa.decimal128(3, 0), pa.decimal128(3, 1), pa.decimal256(5, 5))
FLOATS = (pa.float32(), pa.float64())
NUMBERS: tuple[int | float | Decimal, ...] = (
    *(0, 1, -1, 2, 127, 128, -128, -129, 255, 256, 999, 1_000, -999, -1_000, 2**53 + 1, -(2**53) - 1),
    *(2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**64, 10**400, -(10**400)),
    *(0.0, -0.0, 0.5, -0.5, 1.5, 126.9, 127.5, 255.5, 1e300, -1e300, math.inf, -math.inf),
    *(
        Decimal("0.1"),
        Decimal("-0.1"),
        Decimal("99.95"),
        Decimal("0.99999"),
        Decimal("0.999991"),
        Decimal(0),
        Decimal("0E-200"),
    ),
    *(HUGE, -HUGE, TINY, -TINY, Decimal("Infinity"), Decimal("-Infinity"), Decimal("1E+100"), Decimal("1E-100")),
)


def _compared(one: Any, other: Any) -> int:
    """By their exact values; infinity is beyond each."""
    if math.isinf(float_or_zero(one)) or math.isinf(float_or_zero(other)):
        left, right = float_or_zero(one), float_or_zero(other)
    else:
        left, right = Fraction(one), Fraction(other)
    return (left > right) - (left < right)


def float_or_zero(value: Any) -> float:
    if isinstance(value, float) or (isinstance(value, Decimal) and value.is_infinite()):
        return float(value)
    return 0.0


def _range(kind: pa.DataType) -> tuple[Any, Any, Any]:
    """The least and the greatest value, and the distance from one to the next."""
    if pa.types.is_decimal(kind):
        step = Decimal(1).scaleb(-kind.scale)
        most = step * (10**kind.precision - 1)
        return -most, most, step
    bits = kind.bit_width
    if pa.types.is_signed_integer(kind):
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 1
    return 0, 2**bits - 1, 1


@pytest.mark.parametrize("kind", [*INTEGERS, *DECIMALS], ids=str)
@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_neighbours_enclose_a_number_as_closely_as_their_type_can(value: Any, kind: pa.DataType) -> None:
    near = neighbours(value, kind)
    assert near is not None
    least, most, step = _range(kind)
    below = None if near.below is None else near.below.as_py()
    above = None if near.above is None else near.above.as_py()
    if below is None:
        assert _compared(value, least) < 0
        assert above == least
    else:
        assert _compared(below, value) <= 0
        assert below == most or _compared(below + step, value) > 0
    if above is None:
        assert _compared(value, most) > 0
        assert below == most
    else:
        assert _compared(above, value) >= 0
        assert above == least or _compared(above - step, value) < 0
    exact = None if near.exact is None else near.exact.as_py()
    assert exact == (below if below is not None and above is not None and _compared(below, value) == 0 else None)
    for scalar in (near.below, near.above):
        assert scalar is None or scalar.type == kind


@pytest.mark.parametrize("kind", FLOATS, ids=str)
@pytest.mark.parametrize("value", [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 10**400, -(10**400)])
def test_neighbours_of_integers_among_doubles(value: int, kind: pa.DataType) -> None:
    near = neighbours(value, kind)
    assert near is not None
    assert near.below is not None
    assert near.above is not None
    below, above = near.below.as_py(), near.above.as_py()
    assert below <= value <= above
    assert below == above or math.nextafter(below, math.inf) == above
    assert (near.exact is not None) == (below == above == value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, pa.int8()),
        (False, pa.decimal128(3, 0)),
        (True, pa.float64()),
        ("1", pa.int8()),
        (None, pa.int8()),
        (math.nan, pa.int8()),
        (Decimal("NaN"), pa.decimal128(3, 0)),
        (1.5, pa.float64()),
        (1, pa.string()),
        (1, pa.float16()),
        (1, pa.timestamp("us")),
    ],
    ids=repr,
)
def test_what_arrow_compares_as_it_is_has_no_neighbours(value: Any, kind: pa.DataType) -> None:
    assert neighbours(value, kind) is None


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_a_decimal_beside_floats_is_the_nearest_double(kind: pa.DataType) -> None:
    for value in (Decimal("0.1"), HUGE, TINY, Decimal("1E+400"), Decimal("-Infinity")):
        near = neighbours(value, kind)
        assert near is not None
        assert near.exact == pa.scalar(float(value))


@pytest.mark.parametrize(
    ("values", "kind", "found"),
    [
        ((1, 128, -129, -128, 127), pa.int8(), [1, -128, 127]),
        ((), pa.int8(), []),
        ((1, 1.5, 2.0), pa.int8(), [1, 2]),
        ((1.5, 2.0), pa.int8(), [2]),
        ((1, Decimal("2.5"), Decimal(3)), pa.int64(), [1, 3]),
        ((True, 1), pa.int8(), None),
        ((1, "x"), pa.int8(), None),
        ((1, math.nan), pa.int8(), None),
        ((1.5, 2**53 + 1, 7), pa.float64(), [1.5, 7.0]),
        ((0, 1), pa.float32(), [0.0, 1.0, 0.0, -0.0]),
        ((-0.0,), pa.float64(), [-0.0, 0.0, -0.0]),
        ((), pa.float64(), []),
        ((1.5, Decimal("0.1"), Decimal("1E+400")), pa.float64(), [1.5, 0.1, math.inf]),
        (("x",), pa.float64(), None),
        ((Decimal("1.5"), 2, Decimal("0.05"), 10**5), pa.decimal128(3, 1), [Decimal("1.5"), Decimal("2.0")]),
        ((), pa.decimal128(3, 1), None),
        ((True,), pa.decimal128(3, 1), None),
        (("a",), pa.string(), None),
    ],
    ids=repr,
)
def test_members_are_the_values_that_a_type_has(values: Any, kind: pa.DataType, found: list[Any] | None) -> None:
    members = members_of(values, kind)
    assert (None if members is None else members.to_pylist()) == found
    if members is not None:
        assert members.type == (pa.float64() if pa.types.is_floating(kind) else kind)
    if found and 0.0 in found:
        assert members is not None
        assert {math.copysign(1, each) for each in members.to_pylist() if each == 0} == {1.0, -1.0}


@pytest.mark.parametrize("kind", [pa.int8(), pa.decimal128(3, 1)], ids=str)
def test_an_exponent_of_any_size_is_not_written_out(kind: pa.DataType) -> None:
    """It would take all memory there is."""
    for value in (Decimal("1E-999999999"), Decimal("-1E-999999999")):
        near = neighbours(value, kind)
        assert near is not None
        assert near.below is not None
        assert near.above is not None
        assert near.exact is None
        assert (near.above if value > 0 else near.below).as_py() != 0
    assert neighbours(Decimal("1E+999999999"), kind) == (pa.scalar(_range(kind)[1], kind), None)
    assert neighbours(Decimal("-1E+999999999"), kind) == (None, pa.scalar(_range(kind)[0], kind))


def test_neighbours_among_round_decimals_are_exact() -> None:
    """A float of the scale would not be."""
    value = 12345678901234567890123456
    found = neighbours(value, pa.decimal128(38, -2))
    assert found is not None
    assert found.below is not None
    assert found.above is not None
    assert (found.below.as_py(), found.above.as_py()) == (value - 56, value + 44)
