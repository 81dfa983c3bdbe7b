"""Spans of time that partitions stand for: a year, month, day, hour or minute, in UTC. Vectorised.

A span is an *ordinal*, the number of its unit since 1970, as Iceberg's transforms have it. So every value of a column
has one, also before 1970 and outside of the years that Python's dates reach.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.spi.table import Transform

UNITS = (Transform.YEAR, Transform.MONTH, Transform.DAY, Transform.HOUR, Transform.MINUTE)
"""The transforms of time, widest first."""

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""How many of a timestamp's unit make a second."""
_SECONDS = {Transform.DAY: 86_400, Transform.HOUR: 3_600, Transform.MINUTE: 60}
_PER_DAY = {Transform.DAY: 1, Transform.HOUR: 24, Transform.MINUTE: 1_440}
_MONTHS = 12
_FIRST_YEAR = 1970
# The Gregorian calendar repeats itself after 400 years. Years here begin in March, so a leap day is a year's last.
_CYCLE_DAYS = 146_097
_CYCLE_YEARS = 400
_MARCH_OF_YEAR_0 = 719_468
"""Days between the first of March of year 0 and the first of January 1970."""

YEAR_TEXT = r"(?:[0-9]{4}|\+[1-9][0-9]{4,}|-[0-9]{4,})"
"""A year as ISO 8601 has it: with a sign before the year 0 and after 9999."""
_TEXT = re.compile(rf"({YEAR_TEXT})(?:-([0-9]{{2}}))?(?:-([0-9]{{2}}))?(?:-([0-9]{{2}}))?(?:-([0-9]{{2}}))?\Z")


@dataclass(frozen=True)
class TimeSpan:
    """One span. ``unit``: one of `UNITS`. ``ordinal``: how many units after the one that began with 1970."""

    unit: Transform
    ordinal: int

    @classmethod
    def parse(cls, text: str, unit: Transform) -> TimeSpan:
        """Undo `text`. Raises `ValueError` for what is none of a span of ``unit``."""
        match = _TEXT.match(text)
        numbers = [int(part) for part in match.groups() if part is not None] if match else []
        if len(numbers) != UNITS.index(unit) + 1:
            raise ValueError(f"{text!r} is no {unit.value}")
        span = cls(unit, _ordinal(unit, numbers))
        if span.text != text:
            raise ValueError(f"{text!r} is no {unit.value} of the calendar")
        return span

    @property
    def parts(self) -> tuple[str, ...]:
        """Year, month, day, hour and minute as text, as far as the unit has them."""
        year, *others = _numbers(self.unit, self.ordinal)
        return (f"{year:04}" if 0 <= year <= 9999 else f"{year:+05}", *(f"{number:02}" for number in others))

    @property
    def text(self) -> str:
        """As Iceberg's engines show it to people: ``2026-11-24-10``."""
        return "-".join(self.parts)

    @property
    def bounds(self) -> tuple[datetime, datetime] | None:
        """The moments, without zone, at which it begins and at which the next one does. None where Python has none."""
        try:
            return _start(self.unit, self.ordinal), _start(self.unit, self.ordinal + 1)
        except (ValueError, OverflowError):
            return None


def takes(kind: pa.DataType, unit: Transform) -> bool:
    """Whether values of ``kind`` lie in spans of ``unit``. A day has no hours."""
    return bool(pt.is_timestamp(kind) or (pt.is_date32(kind) and unit not in (Transform.HOUR, Transform.MINUTE)))


def ordinals(column: pa.Array, unit: Transform) -> pa.Array:
    """The span of each value, as int64; null for null. Moments with a zone are instants already, and those without one
    are taken as they are."""
    if pt.is_date32(column.type):
        days = column.cast(pa.int32()).cast(pa.int64())
    else:
        per_second = PER_SECOND[column.type.unit]
        seconds = _SECONDS.get(unit, _SECONDS[Transform.DAY])
        days = _floor_divided(column.view(pa.int64()), per_second * seconds)
    if unit not in (Transform.YEAR, Transform.MONTH):
        return days
    # As Howard Hinnant's "chrono-compatible low-level date algorithms" count days.
    days = pc.add(days, _MARCH_OF_YEAR_0)
    cycle = _floor_divided(days, _CYCLE_DAYS)
    day = pc.subtract(days, pc.multiply(cycle, _CYCLE_DAYS))
    leaps = pc.subtract(
        pc.add(pc.subtract(day, pc.divide(day, 1_460)), pc.divide(day, 36_524)), pc.divide(day, 146_096)
    )
    year = pc.divide(leaps, 365)
    of_year = pc.subtract(day, pc.subtract(pc.add(pc.multiply(year, 365), pc.divide(year, 4)), pc.divide(year, 100)))
    march = pc.divide(pc.add(pc.multiply(of_year, 5), 2), 153)
    months = pc.add(pc.multiply(pc.add(year, pc.multiply(cycle, _CYCLE_YEARS)), _MONTHS), pc.add(march, 2))
    if unit is Transform.MONTH:
        return pc.subtract(months, _FIRST_YEAR * _MONTHS)
    return pc.subtract(_floor_divided(months, _MONTHS), _FIRST_YEAR)


def _floor_divided(array: pa.Array, divisor: int) -> pa.Array:
    """Arrow rounds towards zero, which is wrong before 1970."""
    quotient = pc.divide(array, divisor)
    rest = pc.subtract(array, pc.multiply(quotient, divisor))
    return pc.subtract(quotient, pc.less(rest, 0).cast(pa.int64()))


def _numbers(unit: Transform, ordinal: int) -> list[int]:
    if unit is Transform.YEAR:
        return [ordinal + _FIRST_YEAR]
    if unit is Transform.MONTH:
        year, month = divmod(ordinal, _MONTHS)
        return [year + _FIRST_YEAR, month + 1]
    days, rest = divmod(ordinal, _PER_DAY[unit])
    of_day = {Transform.DAY: [], Transform.HOUR: [rest], Transform.MINUTE: list(divmod(rest, 60))}[unit]
    return [*_date_of(days), *of_day]


def _ordinal(unit: Transform, numbers: list[int]) -> int:
    year, month, day, hour, minute = _filled(numbers)
    if unit is Transform.YEAR:
        return year - _FIRST_YEAR
    if unit is Transform.MONTH:
        return (year - _FIRST_YEAR) * _MONTHS + month - 1
    days = _days_of(year, month, day)
    return {Transform.DAY: days, Transform.HOUR: days * 24 + hour}.get(unit, (days * 24 + hour) * 60 + minute)


def _date_of(days: int) -> tuple[int, int, int]:
    """A day since 1970 as year, month and day. Python's calendar has years 1 to 9999 only, so one of its cycles is
    asked."""
    cycles, rest = divmod(days, _CYCLE_DAYS)
    found = datetime(_FIRST_YEAR, 1, 1) + timedelta(days=rest)
    return found.year + cycles * _CYCLE_YEARS, found.month, found.day


def _days_of(year: int, month: int, day: int) -> int:
    cycles, rest = divmod(year - _FIRST_YEAR, _CYCLE_YEARS)
    return (datetime(_FIRST_YEAR + rest, month, day) - datetime(_FIRST_YEAR, 1, 1)).days + cycles * _CYCLE_DAYS


def _start(unit: Transform, ordinal: int) -> datetime:
    year, month, day, hour, minute = _filled(_numbers(unit, ordinal))
    return datetime(year, month, day, hour, minute)


def _filled(numbers: list[int]) -> tuple[int, int, int, int, int]:
    year, month, day, hour, minute = [*numbers, *(1, 1, 1, 0, 0)[len(numbers) :]]
    return year, month, day, hour, minute
