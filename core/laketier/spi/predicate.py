"""Predicates that can be pushed down to a source: small, typed, serialisable, and the same for every format.

Null semantics are SQL's: a row is kept when the predicate is true, not when it is null.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.spi.errors import ConfigError
from laketier.spi.literals import is_nan, members_of, neighbours
from laketier.spi.texts import refuse_unwritable


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
    """``column op value``. ``value`` is a Python scalar; a tuple of scalars for IN; None for the null tests.

    Text compares by its code points: case, accents and blanks count. NaN, of floats or of decimals, equals nothing,
    itself neither, also in the list of an IN. Numbers compare by their values, whatever the column's type: an infinite
    one is beyond all that it can hold. An IN without values is false, for a null as well.
    """

    column: str
    op: Op
    value: Any = None

    def __str__(self) -> str:
        return f"{self.column} {self.op.value}" + ("" if self.value is None else f" {self.value!r}")


@dataclass(frozen=True)
class And:
    """True when all of ``children`` are. A child that is an `And` itself gives its children: a program that joins one
    condition after the other makes no predicate that is nested as deep as they are many."""

    children: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "children", tuple(_flat(self.children, And)))


@dataclass(frozen=True)
class Or:
    """True when any of ``children`` is. A child that is an `Or` itself gives its children, as with `And`."""

    children: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "children", tuple(_flat(self.children, Or)))


@dataclass(frozen=True)
class Not:
    """True when ``child`` is false. Null stays null."""

    child: Predicate


Predicate = Leaf | And | Or | Not
MOST_DEPTH = 100
"""So deep a predicate may be nested. Sources, libraries below them and Arrow walk it by calls within calls, of which
Python has 1,000."""


def _flat(children: Iterable[Predicate], kind: type[And | Or]) -> Iterator[Predicate]:
    for child in children:
        if isinstance(child, kind):
            yield from child.children  # flat itself
        else:
            yield child


def refuse_unfit(predicates: Iterable[Predicate]) -> None:
    """Check predicates before anybody walks them.

    Args:
        predicates: The predicates.

    Raises:
        ConfigError: One is none, is nested more than `MOST_DEPTH` deep, or compares with text that UTF-8 can't write.
    """
    level: list[Any] = list(predicates)
    depth = 0
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            raise ConfigError(
                f"a filter is nested more than {MOST_DEPTH} deep",
                fix="Join conditions in one `And` or `Or`, or compare with a list of values (IN).",
            )
        below: list[Any] = []
        for predicate in level:
            match predicate:
                case Not(child=child):
                    below.append(child)
                case And(children=children) | Or(children=children):
                    below += children
                case Leaf(column=column, value=value):
                    for each in value if isinstance(value, tuple | list) else (value,):
                        if isinstance(each, str):
                            refuse_unwritable(f"column {column!r} is compared with text that is none:", each)
                case _:
                    raise ConfigError(
                        f"a filter is {predicate!r}, and no predicate",
                        fix="Give `Leaf`, `And`, `Or` and `Not` of laketier.spi.",
                    )
        level = below


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


def to_arrow(predicate: Predicate, schema: pa.Schema | None = None) -> pc.Expression:
    """Turn a predicate into a pyarrow compute expression, for `pyarrow.dataset` and `Table.filter`.

    Args:
        predicate: The predicate.
        schema: The schema of the rows. With it a number is compared exactly with each column of numbers, and a moment
            with each column of moments, also where the column's type does not have it; a decimal beside floats counts
            as the nearest double. Without it Arrow fails to compare some of them.

    Returns:
        The expression.
    """
    kinds = {} if schema is None else {field.name: field.type for field in schema}
    return _expression(predicate, kinds, negated=False)


_Kinds = Mapping[str, pa.DataType]


def _expression(predicate: Predicate, kinds: _Kinds, *, negated: bool) -> pc.Expression:
    match predicate:
        case And(children=children):
            return functools.reduce(operator.and_, (_expression(child, kinds, negated=negated) for child in children))
        case Or(children=children):
            return functools.reduce(operator.or_, (_expression(child, kinds, negated=negated) for child in children))
        case Not(child=child):
            return ~_expression(child, kinds, negated=True)
        case Leaf(column=column, op=Op.IN, value=value):
            found = _is_in(pc.field(column), value, kinds.get(column))
            if not negated or not value:
                return found
            # Arrow's is_in is false for null, which a negation would turn into true; SQL's is null.
            return found | (_never(pc.field(column)) if None not in value else pc.scalar(None).cast(pa.bool_()))
        case Leaf(column=column, op=op, value=value):
            return _leaf(pc.field(column), op, value, kinds.get(column))
    raise TypeError(f"not a predicate: {predicate!r}")


def _leaf(field: pc.Expression, op: Op, value: Any, kind: pa.DataType | None) -> pc.Expression:
    match op:
        case Op.IS_NULL:
            return field.is_null()
        case Op.NOT_NULL:
            return field.is_valid()
        case Op.STARTS_WITH:
            return pc.starts_with(field, value)
    compared = exact_comparison(op, value, kind)
    if isinstance(compared, bool):
        return ~_never(field) if compared else _never(field)
    op, value = compared
    return COMPARISONS[op](field, value)


def exact_comparison(op: Op, value: Any, kind: pa.DataType | None) -> tuple[Op, Any] | bool:
    """The comparison with ``value`` as one with a value of the type ``kind``. A number and a moment are scalars of
    Arrow then, and what neither is compared with stays as it is. A bool is the answer for each value of the type; null
    stays null."""
    if is_nan(value):
        return op is Op.NE
    near = None if kind is None else neighbours(value, kind)
    if near is None:
        return op, value
    match op:
        case Op.LT | Op.GE:
            bound, otherwise = near.above, op is Op.LT
        case Op.LE | Op.GT:
            bound, otherwise = near.below, op is Op.GT
        case _:
            bound, otherwise = near.exact, op is Op.NE
    return otherwise if bound is None else (op, bound)


def exact_members(values: Sequence[Any], kind: pa.DataType | None) -> pa.Array | list[Any]:
    """Those of the values of an IN that may equal a value of the type ``kind``: neither null nor NaN. Numbers and
    moments are an array of Arrow."""
    items = [value for value in values if value is not None and not is_nan(value)]
    members = None if kind is None else members_of(items, kind)
    return items if members is None else members


COMPARISONS: Mapping[Op, Callable[[Any, Any], Any]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def _never(field: pc.Expression) -> pc.Expression:
    """False, and null where the field is."""
    return field < field


def _is_in(field: pc.Expression, values: Sequence[Any], kind: pa.DataType | None) -> pc.Expression:
    members = exact_members(values, kind)
    if not len(members):  # Arrow looks for a text in no list without a type
        return field.is_null() & field.is_valid()
    if not isinstance(members, pa.Array):
        return field.isin(members)
    return (field if members.type == kind else field.cast(members.type)).isin(members)
