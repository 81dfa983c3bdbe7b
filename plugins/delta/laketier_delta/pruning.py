"""Finds the files that can hold rows that satisfy a predicate, from partition values and statistics. Vectorised over
files.

Unknown always means "may match". Statistics of other writers are read with care: their timestamps may be cut to
milliseconds, their decimals may have been floats or integers of 64 bits, and their float bounds may be NaN or leave it
out.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.spi import And, IncompatibleTable, Leaf, Op, Or, Predicate, columns_of, to_arrow
from laketier.spi.literals import beside

_DIGITS = 15
"""So many of a decimal a float keeps."""


def _as_told(bounds: Any) -> Any:
    """Without NaN, which bounds nothing: Spark, for which it is the greatest number, writes it as a bound. Without
    decimals of more digits than a float keeps: another writer may have rounded them, in either direction. Floats as
    doubles: a filter's number may lie between two floats of fewer bits."""
    kind = bounds.type
    if pt.is_floating(kind):
        return pc.if_else(pc.is_nan(bounds), None, bounds.cast(pa.float64()))
    if not pt.is_decimal(kind) or kind.precision <= _DIGITS:
        return bounds
    limit = pa.scalar(Decimal(1).scaleb(_DIGITS - kind.scale), pa.decimal128(38, kind.scale))
    return pc.if_else(pc.less(pc.abs(bounds), limit), bounds, pa.scalar(None, kind))


class FilePruner:
    """``files`` has one row per file: the columns ``num_records``, and the structs ``partition``, ``min``, ``max``,
    ``null_count`` where there are any, as delta-rs gives them."""

    def __init__(self, files: pa.Table, schema: pa.Schema, partition_columns: Iterable[str]) -> None:
        self._partition_columns = list(partition_columns)
        self._partitions = partition_table(files, schema, self._partition_columns)
        self._bounds = {name: struct_columns(files, name) for name in ("min", "max", "null_count")}
        self._rows = files.column("num_records")
        self._count = files.num_rows

    def exact(self, predicate: Predicate) -> bool:
        """Whether `keep` decides ``predicate`` for whole files, so that nothing of it remains."""
        return columns_of([predicate]) <= set(self._partition_columns)

    def keep(self, predicates: Iterable[Predicate]) -> pa.Array:
        """A mask over the files: False only where no row can satisfy all ``predicates``."""
        mask: Any = pa.repeat(True, self._count)
        for predicate in predicates:
            mask = pc.and_(mask, self._on_partitions(predicate) if self.exact(predicate) else self._may(predicate))
        return mask if isinstance(mask, pa.Array) else mask.combine_chunks()

    def _on_partitions(self, predicate: Predicate) -> Any:
        index = self._partitions.append_column("__file", pa.array(range(self._count), pa.int64()))
        kept = index.filter(to_arrow(predicate, index.schema)).column("__file")
        return pc.is_in(index.column("__file"), value_set=kept.combine_chunks())

    def _may(self, predicate: Predicate) -> Any:
        match predicate:
            case And(children=children):
                masks = [self._may(child) for child in children]
                return _fold(pc.and_, masks)
            case Or(children=children):
                masks = [self._may(child) for child in children]
                return _fold(pc.or_, masks)
            case Leaf(column=column) if column in self._partition_columns:
                return self._on_partitions(predicate)
            case Leaf():
                answer = self._leaf(predicate)
                if answer is not None:
                    return pc.fill_null(answer, True)
        return pa.repeat(True, self._count)

    def _leaf(self, leaf: Leaf) -> Any:
        """True, False or null (unknown) per file; None when statistics can't say anything."""
        nulls = self._bounds["null_count"].get(leaf.column)
        if nulls is not None and pt.is_nested(nulls.type):
            return None  # the nulls of its fields: a struct of nulls is not null itself
        if leaf.op is Op.IS_NULL:
            return None if nulls is None else pc.greater(nulls, 0)
        if leaf.op is Op.NOT_NULL:
            return None if nulls is None else pc.less(nulls, self._rows)
        low, high = self._low_and_high(leaf.column)
        if low is None or high is None:
            return None
        kind = low.type
        values = leaf.value if leaf.op is Op.IN else (leaf.value,)
        scalars = [_scalar(value, kind) for value in values if value is not None]
        if None in scalars or not scalars:
            return None
        if leaf.op in (Op.EQ, Op.IN):
            hits = [pc.and_kleene(pc.less_equal(low, value), pc.greater_equal(high, value)) for value in scalars]
            return _fold(pc.or_kleene, hits)
        return self._compared(leaf.op, low, high, scalars[0])

    def _compared(self, op: Op, low: Any, high: Any, value: pa.Scalar) -> Any:
        if op is Op.LT:
            return pc.less(low, value)
        if op is Op.LE:
            return pc.less_equal(low, value)
        if op in (Op.GT, Op.GE) and pt.is_floating(low.type):
            return None  # a NaN that the bounds leave out is greater than everything for Spark
        if op is Op.GT:
            return pc.greater(high, value)
        if op is Op.GE:
            return pc.greater_equal(high, value)
        if op is Op.STARTS_WITH and pt.is_string(low.type):
            begins = pc.utf8_slice_codeunits(low, 0, len(value.as_py()))
            return pc.and_kleene(pc.greater_equal(high, value), pc.less_equal(begins, value))
        return None

    def _low_and_high(self, column: str) -> tuple[Any, Any]:
        low, high = self._bounds["min"].get(column), self._bounds["max"].get(column)
        if low is None or high is None or pt.is_nested(low.type) or pt.is_boolean(low.type):
            return None, None
        if pt.is_timestamp(high.type):
            high = pc.add(high, pa.scalar(timedelta(milliseconds=1), pa.duration("us")))
        return _as_told(low), _as_told(high)


def partition_table(files: pa.Table, schema: pa.Schema, columns: list[str]) -> pa.Table:
    """The partition values of ``files`` in the types of the table."""
    found = struct_columns(files, "partition")
    arrays = [found[name].cast(schema.field(name).type) for name in columns]
    return pa.table(arrays, schema=pa.schema([schema.field(name) for name in columns]))


def partition_rows(files: pa.Table, schema: pa.Schema, columns: list[str]) -> list[dict[str, Any]]:
    """`partition_table` as Python values. Raises `IncompatibleTable` for times that Python's dates don't reach."""
    try:
        rows: list[dict[str, Any]] = partition_table(files, schema, columns).to_pylist()
    except (OverflowError, ValueError) as error:
        raise IncompatibleTable(
            f"a partition of {', '.join(columns)} lies outside the years 1 to 9999",
            why=str(error),
            fix="Read and write that table with Spark.",
        ) from error
    return rows


def struct_columns(files: pa.Table, name: str) -> dict[str, Any]:
    """The children of a struct column, by name; nothing where there is no such column."""
    if name not in files.column_names:
        return {}
    struct = files.column(name).combine_chunks()
    # `flatten` and not `field`: a file without statistics has a null struct, whose children may hold anything.
    return dict(zip([struct.type.field(i).name for i in range(struct.type.num_fields)], struct.flatten(), strict=True))


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """``value`` in the column's type, None when it is of another, or is NaN, or when the type has not this very value:
    Arrow cuts the digits of a decimal that becomes an integer, and the time of a moment that becomes a day."""
    if isinstance(value, bool) or value != value:
        return None
    value = beside(value, kind)
    try:
        scalar = pa.scalar(value, type=kind)
        return scalar if scalar.as_py() == value else None
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _fold(function: Any, masks: list[Any]) -> Any:
    result = masks[0]
    for mask in masks[1:]:
        result = function(result, mask)
    return result
