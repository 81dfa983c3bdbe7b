"""Numbers and moments that a column is compared with, as the next values of the column's own type.

Arrow brings both sides of a comparison to one type first, and fails where that type lacks one of them: a uint64 beyond
int64 beside a small literal, a literal beyond the range of its column, an integer beside decimals, a moment of another
unit and another zone. Values of one type compare as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.types as pt

_MOST_DIGITS = 100
"""More than a decimal of Arrow has. An exponent beyond that is not written out: it may be of any size."""
_EPOCH = datetime(1970, 1, 1)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Neighbours(NamedTuple):
    """The greatest value of a type that is not above a literal, and the least that is not below it. None where all
    values of the type are beyond the literal."""

    below: pa.Scalar | None
    above: pa.Scalar | None

    @property
    def exact(self) -> pa.Scalar | None:
        """The literal itself, where the type has it."""
        same = self.below is not None and self.above is not None and self.below.equals(self.above)
        return self.below if same else None


def beside(value: Any, kind: pa.DataType) -> Any:
    """``value`` as it is compared with values of the type ``kind``: beside moments a day is its first one, by UTC.
    Arrow compares them so, and makes days of all literals of a list that begins with one."""
    if type(value) is date and pt.is_timestamp(kind):
        return datetime(value.year, value.month, value.day, tzinfo=None if kind.tz is None else UTC)
    return value


def neighbours(value: Any, kind: pa.DataType) -> Neighbours | None:
    """Those of ``value`` in the type ``kind``, as it is `beside` others; None for what Arrow compares as it is."""
    value = beside(value, kind)
    if isinstance(value, datetime):
        fits = pt.is_timestamp(kind) and (value.tzinfo is None) == (kind.tz is None)
        return _moments(nanoseconds_of(value), kind) if fits else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or is_nan(value):
        return None
    if pt.is_integer(kind):
        least, most = _integer_range(kind)
        return _steps(value, kind, 0, least, most)
    if pt.is_decimal(kind):
        most = 10**kind.precision - 1
        return _steps(value, kind, kind.scale, -most, most)
    if pt.is_float32(kind) or pt.is_float64(kind):
        match value:
            case int():
                return _floats(value)
            case Decimal():
                nearest = pa.scalar(float(value))
                return Neighbours(nearest, nearest)
    return None


def members_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    """Those of ``values`` that the type ``kind`` has; None for what Arrow looks up as it is. Of floats they are
    doubles, which hold each float, and both zeros where there is one: Arrow tells them apart here, and nowhere else."""
    if pt.is_integer(kind) and all(type(value) is int for value in values):
        least, most = _integer_range(kind)
        return pa.array([value for value in values if least <= value <= most], kind)
    if pt.is_float32(kind) or pt.is_float64(kind):
        if not all(isinstance(value, int | float | Decimal) for value in values):
            return None
        values = [float(value) if isinstance(value, Decimal) else value for value in values]
        exact = [_floats(value).exact if isinstance(value, int) else value for value in values]
        numbers = [each.as_py() if isinstance(each, pa.Scalar) else each for each in exact if each is not None]
        return pa.array([*numbers, *((0.0, -0.0) if 0.0 in numbers else ())], pa.float64())
    near = [neighbours(value, kind) for value in values]
    if None in near or not near:
        return None
    return pa.array([each.exact for each in near if each and each.exact is not None], kind)


def nanoseconds_of(value: datetime) -> int:
    """Of a moment since the epoch, by UTC if it has a zone. A pandas Timestamp, which Arrow gives for a timestamp[ns],
    has more of them than a datetime."""
    local = datetime(*value.timetuple()[:6], value.microsecond)
    since = local - _EPOCH - (value.utcoffset() or timedelta())
    return since // timedelta(microseconds=1) * 1000 + int(getattr(value, "nanosecond", 0))


def _integer_range(kind: pa.DataType) -> tuple[int, int]:
    """The least and the greatest value of a type of integers."""
    bits: int = kind.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pt.is_signed_integer(kind) else (0, 2**bits - 1)


def _steps(value: int | float | Decimal, kind: pa.DataType, scale: int, least: int, most: int) -> Neighbours:
    """In a type whose values are the integers from ``least`` to ``most``, each divided by ten to the ``scale``."""
    if _is_huge(value):
        floor, ceiling = (most, most + 1) if value > 0 else (least - 1, least)
    else:
        if isinstance(value, Decimal) and value and value.adjusted() < -_MOST_DIGITS:
            value = Decimal(1).scaleb(-_MOST_DIGITS).copy_sign(value)
        number = Fraction(value) * Fraction(10) ** scale
        floor, ceiling = math.floor(number), math.ceil(number)
    below = None if floor < least else _scalar(min(floor, most), kind, scale)
    above = None if ceiling > most else _scalar(max(ceiling, least), kind, scale)
    return Neighbours(below, above)


def is_nan(value: Any) -> bool:
    """Whether ``value`` is a NaN of floats or of decimals."""
    return value.is_nan() if isinstance(value, Decimal) else isinstance(value, float) and math.isnan(value)


def _is_huge(value: int | float | Decimal) -> bool:
    """Infinite, or of so many digits that every value of any type is on one side."""
    if isinstance(value, Decimal):
        return value.is_infinite() or value.adjusted() > _MOST_DIGITS
    return isinstance(value, float) and math.isinf(value)


def _scalar(number: int, kind: pa.DataType, scale: int) -> pa.Scalar:
    if pt.is_integer(kind):
        return pa.scalar(number, kind)
    return pa.scalar(Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale)), kind)


def _moments(nanoseconds: int, kind: pa.DataType) -> Neighbours:
    number = Fraction(nanoseconds * _PER_SECOND[kind.unit], 10**9)
    floor, ceiling = math.floor(number), math.ceil(number)
    least, most = -(2**63), 2**63 - 1
    below = None if floor < least else pa.scalar(min(floor, most), kind)
    above = None if ceiling > most else pa.scalar(max(ceiling, least), kind)
    return Neighbours(below, above)


def _floats(value: int) -> Neighbours:
    try:
        near = float(value)
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    below = near if near <= value else math.nextafter(near, -math.inf)
    above = near if near >= value else math.nextafter(near, math.inf)
    return Neighbours(pa.scalar(below), pa.scalar(above))
