"""Predicates that can be pushed down to a source: small, typed, serialisable, and the same for every format.

Null semantics are SQL's: a row is kept when the predicate is true, not when it is null.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class Op(Enum):
    """The operators of a `Leaf`."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    IN = "in"
    IS_NULL = "is null"
    NOT_NULL = "is not null"
    STARTS_WITH = "starts with"


@dataclass(frozen=True)
class Leaf:
    """``column op value``. ``value`` is a Python scalar; a tuple of scalars for IN; None for the null tests."""

    column: str
    op: Op
    value: Any = None

    def __str__(self) -> str:
        return f"{self.column} {self.op.value}" + ("" if self.value is None else f" {self.value!r}")


@dataclass(frozen=True)
class And:
    """True when all of ``children`` are."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    """True when any of ``children`` is."""

    children: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not:
    """True when ``child`` is false. Null stays null."""

    child: Predicate


Predicate = Leaf | And | Or | Not


def columns_of(predicates: Iterable[Predicate]) -> set[str]:
    """Collect the columns that predicates read.

    Args:
        predicates: The predicates.

    Returns:
        The names of the columns.
    """
    found: set[str] = set()
    for predicate in predicates:
        match predicate:
            case Leaf(column=column):
                found.add(column)
            case Not(child=child):
                found |= columns_of([child])
            case And(children=children) | Or(children=children):
                found |= columns_of(children)
    return found


def to_arrow(predicate: Predicate) -> pc.Expression:
    """Turn a predicate into a pyarrow compute expression, for `pyarrow.dataset` and `Table.filter`.

    Args:
        predicate: The predicate.

    Returns:
        The expression.
    """
    return _expression(predicate, negated=False)


def _expression(predicate: Predicate, *, negated: bool) -> pc.Expression:
    match predicate:
        case And(children=children):
            result = _expression(children[0], negated=negated)
            for child in children[1:]:
                result = result & _expression(child, negated=negated)
            return result
        case Or(children=children):
            result = _expression(children[0], negated=negated)
            for child in children[1:]:
                result = result | _expression(child, negated=negated)
            return result
        case Not(child=child):
            return ~_expression(child, negated=True)
        case Leaf(column=column, op=Op.IN, value=value) if negated:
            # Arrow's is_in is false for null, which a negation would turn into true; SQL's is null.
            found = pc.field(column).isin([item for item in value if item is not None])
            unknown = pc.field(column) < pc.field(column) if None not in value else pc.scalar(None).cast(pa.bool_())
            return found | unknown
        case Leaf(column=column, op=op, value=value):
            return _leaf(pc.field(column), op, value)
    raise TypeError(f"not a predicate: {predicate!r}")


def _leaf(field: pc.Expression, op: Op, value: Any) -> pc.Expression:
    match op:
        case Op.EQ:
            return field == value
        case Op.NE:
            return field != value
        case Op.LT:
            return field < value
        case Op.LE:
            return field <= value
        case Op.GT:
            return field > value
        case Op.GE:
            return field >= value
        case Op.IN:
            return field.isin([item for item in value if item is not None])
        case Op.IS_NULL:
            return field.is_null()
        case Op.NOT_NULL:
            return field.is_valid()
        case Op.STARTS_WITH:
            return pc.starts_with(field, value)
