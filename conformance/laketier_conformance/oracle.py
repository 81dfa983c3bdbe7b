"""Which rows a predicate is true for, told by pyarrow's compute functions alone: the other side of a comparison is none
of laketier's own code."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.spi import And, Leaf, Not, Op, Or, Predicate, ScanRequest
from laketier_conformance.lake import Table, finished, read_plan

_COMPARED = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}


def rows_for(predicate: Predicate, rows: pa.Table) -> pa.Table:
    """The rows for which ``predicate`` is true, by SQL's rules. Its literals are values of the columns' own types."""
    return rows.filter(_mask(predicate, rows), null_selection_behavior="drop")


def compare(table: Table, everything: pa.Table, predicates: Iterable[Predicate], **request: Any) -> None:
    """Each filtered scan of ``table`` gives the rows of ``everything`` that pyarrow filters; told apart by ``id``."""
    source = table.source
    for predicate in predicates:
        plan = source.plan(ScanRequest(filters=(predicate,), **request))
        found = sorted(finished(read_plan(source, plan), plan, None)["id"].to_pylist())
        expected = sorted(rows_for(predicate, everything)["id"].to_pylist())
        assert found == expected, (
            f"rows were read by the filter {predicate}: expected the ids {expected} (all rows, filtered by pyarrow), "
            f"found {found}"
        )


def _mask(predicate: Predicate, rows: pa.Table) -> Any:
    match predicate:
        case And(children=children):
            return functools.reduce(pc.and_kleene, (_mask(child, rows) for child in children))
        case Or(children=children):
            return functools.reduce(pc.or_kleene, (_mask(child, rows) for child in children))
        case Not(child=child):
            return pc.invert(_mask(child, rows))
        case Leaf(column=column, op=op, value=value):
            return _leaf(rows.column(column), op, value)
    raise TypeError(f"not a predicate: {predicate!r}")


def _leaf(values: pa.ChunkedArray, op: Op, literal: Any) -> Any:
    match op:
        case Op.IS_NULL:
            return pc.is_null(values)
        case Op.NOT_NULL:
            return pc.is_valid(values)
        case Op.STARTS_WITH:
            return pc.starts_with(values, literal)
        case Op.IN:
            never = pc.not_equal(values, values)  # false, true for NaN, null for null
            hits = [pc.equal(values, pa.scalar(item, values.type)) for item in literal]
            return functools.reduce(pc.or_kleene, hits, pc.and_kleene(never, pa.scalar(False)))
    return _COMPARED[op](values, pa.scalar(literal, values.type))
