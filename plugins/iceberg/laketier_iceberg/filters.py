"""Predicates as pyiceberg expressions, translated only where both mean exactly the same rows."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from laketier.spi import And, Leaf, Not, Op, Or, Predicate

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType

_LARGEST_FLOAT = 2**127
"""The next one are infinite, of which pyiceberg says that no row of floats has it."""
_NAMES = {
    Op.EQ: "EqualTo",
    Op.NE: "NotEqualTo",
    Op.LT: "LessThan",
    Op.LE: "LessThanOrEqual",
    Op.GT: "GreaterThan",
    Op.GE: "GreaterThanOrEqual",
}


def to_expression(predicate: Predicate, schema: Schema) -> BooleanExpression | None:
    """An expression that is true for every row for which ``predicate`` is; None when there is no telling one.

    It may be true for more rows (Iceberg's ``!=`` takes nulls), so it is for skipping files.
    """
    from pyiceberg import expressions as ex

    match predicate:
        case And(children=children):
            parts = [part for child in children if (part := to_expression(child, schema)) is not None]
            return _join(ex.And, parts)
        case Or(children=children):
            either = [to_expression(child, schema) for child in children]
            return None if any(part is None for part in either) else _join(ex.Or, either)
        case Not(child=Leaf(column=column, op=op)) if op in _ORDERS and _is_floating(schema, column):
            return None  # true for NaN, and the opposite is not; nor do bounds know of NaN
        case Not(child=child):
            negated = _negate(child)
            return None if negated is None else to_expression(negated, schema)
        case Leaf():
            return _leaf(predicate, schema)
    raise TypeError(f"not a predicate: {predicate!r}")


def renamed(predicate: Predicate, schema: Schema, other: Schema) -> Predicate | None:
    """The predicate on columns of ``schema`` by the names that these have in ``other``; None where it has not all."""
    names = {field.field_id: field.name for field in other.fields}
    match predicate:
        case And(children=children) | Or(children=children):
            there = [it for child in children if (it := renamed(child, schema, other)) is not None]
            return type(predicate)(tuple(there)) if len(there) == len(children) else None
        case Not(child=child):
            inner = renamed(child, schema, other)
            return None if inner is None else Not(inner)
        case Leaf(column=column, op=op, value=value):
            field_id = next(field.field_id for field in schema.fields if field.name == column)
            return Leaf(names[field_id], op, value) if field_id in names else None
    raise TypeError(f"not a predicate: {predicate!r}")


def is_positive(predicate: Predicate) -> bool:
    """Whether a null in any column it reads can't make it true in Iceberg's logic but not in SQL's."""
    match predicate:
        case And(children=children) | Or(children=children):
            return all(is_positive(child) for child in children)
        case Not():
            return False
        case Leaf(op=op):
            return op is not Op.NE
    raise TypeError(f"not a predicate: {predicate!r}")


def is_exact(predicate: Predicate, schema: Schema) -> bool:
    """Whether every leaf has a translation, so that nothing was left out."""
    match predicate:
        case And(children=children) | Or(children=children):
            return all(is_exact(child, schema) for child in children)
        case Not(child=child):
            return is_exact(child, schema)
        case Leaf():
            return _leaf(predicate, schema) is not None
    raise TypeError(f"not a predicate: {predicate!r}")


def _join(kind: Any, parts: list[Any]) -> BooleanExpression | None:
    if not parts:
        return None
    result: BooleanExpression = parts[0] if len(parts) == 1 else kind(*parts)
    return result


_ORDERS = (Op.LT, Op.LE, Op.GT, Op.GE)
_OPPOSITE = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.GE: Op.LT, Op.GT: Op.LE, Op.LE: Op.GT}


def _negate(predicate: Predicate) -> Predicate | None:
    """The predicate that is true where ``predicate`` is false; None when it has no leaf of its own."""
    match predicate:
        case Not(child=child):
            return child
        case And(children=children):
            return Or(tuple(Not(child) for child in children))
        case Or(children=children):
            return And(tuple(Not(child) for child in children))
        case Leaf(column=column, op=Op.IS_NULL):
            return Leaf(column, Op.NOT_NULL)
        case Leaf(column=column, op=Op.NOT_NULL):
            return Leaf(column, Op.IS_NULL)
        case Leaf(column=column, op=op, value=value) if op in _OPPOSITE:
            return Leaf(column, _OPPOSITE[op], value)
    return None


def _kind_of(schema: Schema, column: str) -> IcebergType:
    return next(field.field_type for field in schema.fields if field.name == column)


def _is_floating(schema: Schema, column: str) -> bool:
    return str(_kind_of(schema, column)) in ("float", "double")


def _leaf(leaf: Leaf, schema: Schema) -> BooleanExpression | None:
    from pyiceberg import expressions

    # The constructors' own types know only the names that JSON has for the arguments.
    ex: Any = expressions
    kind = _kind_of(schema, leaf.column)
    if not kind.is_primitive:
        return None
    reference = ex.Reference(leaf.column)
    match leaf.op:
        case Op.IS_NULL:
            return ex.IsNull(reference)
        case Op.NOT_NULL:
            return ex.NotNull(reference)
        case Op.IN:
            values = [value for value in leaf.value if value is not None]
            return ex.In(reference, values) if all(_literal_fits(value, kind) for value in values) else None
        case Op.STARTS_WITH:
            return ex.StartsWith(reference, leaf.value) if str(kind) == "string" else None
    if not _literal_fits(leaf.value, kind):
        return None
    result: BooleanExpression = getattr(ex, _NAMES[leaf.op])(reference, leaf.value)
    return result


def _literal_fits(value: Any, kind: IcebergType) -> bool:
    """Whether pyiceberg takes this literal for this column without rounding it."""
    from pyiceberg import types as it

    match value, kind:
        case bool(), _:
            return isinstance(kind, it.BooleanType)
        case int(), it.IntegerType():
            return -(2**31) <= value < 2**31
        case int(), it.LongType():
            return -(2**63) <= value < 2**63
        case int() | float(), it.DoubleType():
            return _is_float(value, "d")
        case int() | float(), it.FloatType():
            return abs(value) <= _LARGEST_FLOAT and _is_float(value, "f")
        case Decimal(), it.DecimalType():
            return value.as_tuple().exponent == -kind.scale  # a letter where it is no number
        case str(), it.StringType():
            return True
        case bytes(), it.BinaryType():
            return True
        case datetime.datetime(), it.TimestampType():
            return value.tzinfo is None
        case datetime.datetime(), it.TimestamptzType():
            return value.tzinfo is not None
        case datetime.datetime(), _:
            return False
        case datetime.date(), it.DateType():
            return True
    return False


def _is_float(value: float, code: str) -> bool:
    """Whether a float of the width that ``code`` of `struct` names is ``value``, to the last digit. Of NaN none is."""
    try:
        return bool(struct.unpack(code, struct.pack(code, value))[0] == value)
    except struct.error:  # a whole number that no float holds
        return False
