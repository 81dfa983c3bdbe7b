"""What a predicate can be over the rows of one file, judged by what the manifest knows of it.

`outcomes` gives the set of truth values that some row may have. Without true in it, the file is skipped; with
nothing else in it, the file needs no filter. Where anything is unsure, all three are possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.manifests import FileEntry
from laketier.kit.time_spans import UNITS, TimeSpan
from laketier.spi import And, Leaf, Not, Op, Or, PartitionField, Predicate, Transform

Outcomes = frozenset[bool | None]

ANY: Outcomes = frozenset({True, False, None})
_NULL: Outcomes = frozenset({None})
_TRUE: Outcomes = frozenset({True})
_FALSE: Outcomes = frozenset({False})


@dataclass(frozen=True)
class Range:
    """The values of a column in one file: bounds (both None when unknown), and whether there are nulls or values.
    ``open``: all values are below ``high``."""

    low: Any
    high: Any
    nulls: bool
    values: bool
    open: bool = False


def outcomes(predicate: Predicate, ranges: Mapping[str, Range]) -> Outcomes:
    """The truth values that ``predicate`` may have over the rows of a file."""
    match predicate:
        case Leaf():
            known = ranges.get(predicate.column)
            return ANY if known is None else _leaf(predicate, known)
        case Not(child=child):
            return frozenset(None if value is None else not value for value in outcomes(child, ranges))
        case And(children=children):
            return _combine(children, ranges, _and)
        case Or(children=children):
            return _combine(children, ranges, _or)
    raise TypeError(f"not a predicate: {predicate!r}")


def ranges_of(
    entry: FileEntry,
    schema: pa.Schema,
    columns: Iterable[str],
    known_columns: set[str],
    fields: Sequence[PartitionField] = (),
) -> dict[str, Range]:
    """What the manifest knows of ``columns`` in a file that was written with ``known_columns``, in a table that is
    partitioned by ``fields``."""
    partition = dict(entry.partition)
    spans = {field.column: (field.transform, partition.get(field.name)) for field in fields if field.transform in UNITS}
    found: dict[str, Range] = {}
    for name in columns:
        kind = schema.field(name).type
        if name not in known_columns:
            found[name] = Range(None, None, nulls=True, values=False)
        elif name in partition:
            text = partition[name]
            value = decode(text, kind)
            found[name] = Range(value, value, nulls=text is None, values=text is not None)
        elif name in entry.details["stats"]:
            low, high, nulls = entry.details["stats"][name]
            known = low is not None and high is not None
            found[name] = Range(
                decode(low, kind) if known else None,
                decode(high, kind) if known else None,
                nulls=nulls > 0,
                values=nulls < entry.rows,
            )
        if name in spans and name in known_columns and (name not in found or found[name].low is None):
            found[name] = _in_span(*spans[name], kind)
    return found


def _in_span(unit: Transform, text: str | None, kind: pa.DataType) -> Range:
    """What the partition by time says of its column."""
    bounds = None if text is None else TimeSpan.parse(text, unit).bounds
    if bounds is None:
        return Range(None, None, nulls=text is None, values=text is not None)
    low, high = bounds
    if pt.is_date(kind):
        return Range(low.date(), high.date(), nulls=False, values=True, open=True)
    zone = None if kind.tz is None else UTC
    return Range(low.replace(tzinfo=zone), high.replace(tzinfo=zone), nulls=False, values=True, open=True)


def decode(text: str | None, kind: pa.DataType) -> Any:
    """Undo `laketier.kit.partition.partition_text` for a column of type ``kind``."""
    if text is None:
        return None
    if pt.is_boolean(kind):
        return text == "true"
    if pt.is_integer(kind):
        return int(text)
    if pt.is_date(kind):
        return date.fromisoformat(text)
    if pt.is_timestamp(kind):
        moment = datetime.fromisoformat(text)
        return moment if kind.tz is None else moment.replace(tzinfo=UTC)
    if pt.is_decimal(kind):
        return Decimal(text)
    return text


def _leaf(leaf: Leaf, known: Range) -> Outcomes:
    if leaf.op in (Op.IS_NULL, Op.NOT_NULL):
        of_null = leaf.op is Op.IS_NULL
        return frozenset({of_null} if known.nulls else ()) | frozenset({not of_null} if known.values else ())
    if leaf.op is Op.IN and not leaf.value:
        return _FALSE  # of nulls too
    result = _NULL if known.nulls else frozenset()
    if known.values:
        result |= _compare(leaf, known.low, known.high, known.open)
    return result


def _compare(leaf: Leaf, low: Any, high: Any, is_open: bool) -> Outcomes:
    """Over values that are not null, between ``low`` and ``high``; below it, where the range ``is_open``."""
    if low is None or high is None:
        return ANY
    if leaf.op is Op.IN:
        return _fold([_compare(Leaf(leaf.column, Op.EQ, item), low, high, is_open) for item in leaf.value], _or)
    value = leaf.value
    if not _comparable(value, low):
        return ANY
    below = high <= value if is_open else high < value
    match leaf.op:
        case Op.EQ:
            return _truth(always=low == high == value, never=value < low or below)
        case Op.NE:
            return _truth(always=value < low or below, never=low == high == value)
        case Op.LT:
            return _truth(always=below, never=low >= value)
        case Op.LE:
            return _truth(always=high <= value, never=low > value)
        case Op.GT:
            return _truth(always=low > value, never=high <= value)
        case Op.GE:
            return _truth(always=low >= value, never=below)
        case Op.STARTS_WITH:
            length = len(value)
            return _truth(
                always=low[:length] == high[:length] == value, never=high[:length] < value or low[:length] > value
            )
    return ANY


def _comparable(value: Any, low: Any) -> bool:
    """Whether Python orders the two as the column does. A date is no moment, a bool no number, a naive moment none
    with a zone; comparing these raises, or answers wrongly."""
    if isinstance(value, datetime) and isinstance(low, datetime):
        return (value.tzinfo is None) == (low.tzinfo is None)
    return type(value) is type(low)


def _truth(*, always: bool, never: bool) -> Outcomes:
    if always:
        return _TRUE
    return _FALSE if never else _TRUE | _FALSE


def _combine(
    children: tuple[Predicate, ...],
    ranges: Mapping[str, Range],
    rule: Callable[[bool | None, bool | None], bool | None],
) -> Outcomes:
    return _fold([outcomes(child, ranges) for child in children], rule) if children else ANY


def _fold(sets: list[Outcomes], rule: Callable[[bool | None, bool | None], bool | None]) -> Outcomes:
    result = sets[0]
    for other in sets[1:]:
        result = frozenset(rule(a, b) for a, b in product(result, other))
    return result


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False
