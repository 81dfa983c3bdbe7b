"""Predicates as Lance's SQL, where it is certain that Lance keeps exactly the rows that the predicate asks for.

Left to the reader: floats (Lance orders NaN above all numbers and tells -0.0 from 0.0), and literals of another type
than their column's (Lance would coerce one of the two).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.spi import And, Leaf, Not, Op, Or, Predicate

_COMPARISONS = {Op.EQ: "=", Op.NE: "!=", Op.LT: "<", Op.LE: "<=", Op.GT: ">", Op.GE: ">="}


def to_sql(predicate: Predicate, schema: pa.Schema) -> str | None:
    """The predicate in SQL, None when Lance might not agree with it on some row."""
    match predicate:
        case And(children=children):
            return _joined(" AND ", [to_sql(child, schema) for child in children])
        case Or(children=children):
            return _joined(" OR ", [to_sql(child, schema) for child in children])
        case Not(child=child):
            inner = to_sql(child, schema)
            return None if inner is None else f"NOT ({inner})"
        case Leaf(column=column) if column in schema.names and "`" not in column:
            return _leaf(predicate, schema.field(column).type)
    return None


def _joined(operator: str, parts: list[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts):
        return None
    return operator.join(f"({part})" for part in known)


def _leaf(leaf: Leaf, kind: pa.DataType) -> str | None:
    column = f"`{leaf.column}`"
    if leaf.op is Op.IS_NULL:
        return f"{column} IS NULL"
    if leaf.op is Op.NOT_NULL:
        return f"{column} IS NOT NULL"
    if leaf.op is Op.IN:
        values = ["NULL" if value is None else _literal(value, kind) for value in leaf.value]
        known = [value for value in values if value is not None]
        # An empty list, which SQL has no word for, is left to the reader.
        return f"{column} IN ({', '.join(known)})" if known and len(known) == len(values) else None
    literal = _literal(leaf.value, kind)
    if literal is None:
        return None
    if leaf.op is Op.STARTS_WITH:
        return f"starts_with({column}, {literal})" if _is_string(kind) else None
    return f"{column} {_COMPARISONS[leaf.op]} {literal}"


def _literal(value: Any, kind: pa.DataType) -> str | None:
    for matches, spell in _SPELLINGS:
        if matches(kind):
            return spell(value, kind)
    return None


def _string(value: Any, _: pa.DataType) -> str | None:
    if type(value) is not str or "\0" in value:
        return None
    return "'" + value.replace("'", "''") + "'"


def _integer(value: Any, kind: pa.DataType) -> str | None:
    if type(value) is not int:
        return None
    bits = kind.bit_width
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pt.is_signed_integer(kind) else (0, 2**bits - 1)
    # SQL's own integers have 64 bits and a sign.
    return str(value) if lowest <= value <= min(highest, 2**63 - 1) and value > -(2**63) else None


def _boolean(value: Any, _: pa.DataType) -> str | None:
    return str(value).lower() if type(value) is bool else None


def _date(value: Any, _: pa.DataType) -> str | None:
    return f"date '{value.isoformat()}'" if type(value) is date else None


def _timestamp(value: Any, kind: pa.DataType) -> str | None:
    if type(value) is not datetime or (value.tzinfo is None) != (kind.tz is None):
        return None
    if value.microsecond % {"s": 10**6, "ms": 10**3}.get(kind.unit, 1):
        return None
    if kind.unit == "ns" and not 1680 <= value.year <= 2260:
        return None
    moment = value if value.tzinfo is None else value.astimezone(UTC)
    text = moment.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    zone = "" if kind.tz is None else "+00:00"
    spelled = "Timestamp(%s, %s)"
    unit = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}[kind.unit]
    tz = "None" if kind.tz is None else f'Some("{kind.tz}")'
    return f"arrow_cast('{text}{zone}', '{spelled % (unit, tz)}')"


def _decimal(value: Any, kind: pa.DataType) -> str | None:
    if type(value) is not Decimal or not pt.is_decimal128(kind):
        return None
    return f"arrow_cast('{value:f}', 'Decimal128({kind.precision}, {kind.scale})')" if _fits(value, kind) else None


def _fits(value: Decimal, kind: pa.DataType) -> bool:
    """No decimal of Arrow's is infinite, or no number."""
    try:
        pa.scalar(value, kind)
    except pa.ArrowInvalid:
        return False
    return True


def _is_string(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


_SPELLINGS: list[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], str | None]]] = [
    (_is_string, _string),
    (pt.is_integer, _integer),
    (pt.is_boolean, _boolean),
    (pt.is_date32, _date),
    (pt.is_timestamp, _timestamp),
    (pt.is_decimal, _decimal),
]
