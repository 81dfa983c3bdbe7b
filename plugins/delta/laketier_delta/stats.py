"""Column statistics of a data file, as the Delta protocol spells them, from its Parquet footer.

A reader skips a file by these bounds, so a bound may be wide and must never be narrow. Where the exact value can't be
written (a long string, microseconds, more digits than a double has) it is a little too wide; where none can (NaN, years
beyond 9999) it is left out, which reads as "may match". It is left out as rarely as can be: `DeltaTable.
to_pyarrow_dataset` of delta-rs 1.6 takes a bound that is not there for one that nothing satisfies.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import children

DEFAULT_INDEXED_COLUMNS = 32
MAX_STRING = 32
"""Characters of a string bound, as Spark cuts them."""
_DIGITS = 15
_HIGHEST = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class _Leaf:
    """A leaf column of the file: its place in the footer, its path, and its type."""

    index: int
    path: tuple[str, ...]
    kind: pa.DataType


class FileStatistics:
    """Turns footers of files with one schema into the JSON of an add action. Executor.

    ``indexed_columns``: how many leaf columns get statistics, from the first (-1: all), as
    ``delta.dataSkippingNumIndexedCols``; ``columns`` names them instead (``delta.dataSkippingStatsColumns``).
    """

    def __init__(self, schema: pa.Schema, indexed_columns: int, columns: Collection[str] | None = None) -> None:
        leaves = _leaves(schema)
        if columns is not None:
            self._leaves = [leaf for leaf in leaves if _chosen(leaf.path, columns)]
        else:
            self._leaves = leaves if indexed_columns < 0 else leaves[:indexed_columns]

    def of(self, footer: Any, unbounded: Collection[str]) -> str:
        """The JSON for one file. ``footer`` is its `pyarrow.parquet.FileMetaData`; ``unbounded`` names the top-level
        columns whose bounds are not to be trusted (floats that hold NaN, which footers pass over)."""
        bounds: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
        for leaf in self._leaves:
            nulls, low, high = _merged(footer, leaf)
            if nulls is not None:
                _set(bounds["nullCount"], leaf.path, nulls)
            if pt.is_floating(leaf.kind) and (len(leaf.path) > 1 or leaf.path[0] in unbounded):
                continue
            low, high = _lower(leaf.kind, low), _upper(leaf.kind, high)
            if low is not None:
                _set(bounds["minValues"], leaf.path, low)
            if high is not None:
                _set(bounds["maxValues"], leaf.path, high)
        return _json({"numRecords": footer.num_rows, **bounds})


def _json(value: Any) -> str:
    """JSON as delta-rs reads it right: decimals in plain digits, as it knows no exponents, and characters as they are,
    as it takes U+10FFFF for U+FFFFF when it is escaped as a surrogate pair."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_json(name)}:{_json(item)}" for name, item in value.items()) + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _chosen(path: tuple[str, ...], columns: Collection[str]) -> bool:
    names = {".".join(path[:depth]) for depth in range(1, len(path) + 1)}
    return not names.isdisjoint(columns)


def _leaves(schema: pa.Schema) -> list[_Leaf]:
    """Those of the protocol: what is inside of lists and maps has no statistics of its own."""
    below = (leaf for field in schema for leaf in _below((field.name,), field.type))
    return [_Leaf(index, path, kind) for index, (path, kind) in enumerate(below) if path is not None]


def _below(path: tuple[str, ...] | None, kind: pa.DataType) -> Iterator[tuple[tuple[str, ...] | None, pa.DataType]]:
    inside = children(kind)
    for name, child in inside:
        yield from _below((*path, name) if path is not None and pt.is_struct(kind) else None, child.type)
    if not inside:
        yield path, kind


def _merged(footer: Any, leaf: _Leaf) -> tuple[int | None, Any, Any]:
    """(null count, lowest, highest) over all row groups, in the physical type; None for what is not known."""
    nulls = 0
    lows: list[Any] = []
    highs: list[Any] = []
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(leaf.index)
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return None, None, None
        nulls += statistics.null_count
        if statistics.null_count == chunk.num_values:
            continue
        low, high = _physical(leaf.kind, statistics)
        lows.append(low)
        highs.append(high)
    if not lows or None in lows or None in highs:
        return nulls, None, None
    return nulls, min(lows), max(highs)


def _physical(kind: pa.DataType, statistics: Any) -> tuple[Any, Any]:
    if pt.is_integer(kind) or pt.is_date32(kind) or pt.is_timestamp(kind) or pt.is_floating(kind):
        return statistics.min_raw, statistics.max_raw
    if pt.is_decimal(kind) or pt.is_boolean(kind):
        return statistics.min, statistics.max
    if pt.is_string(kind):
        try:
            return statistics.min, statistics.max
        except UnicodeDecodeError:
            return None, None
    return None, None


def _lower(kind: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if pt.is_string(kind):
        return value[:MAX_STRING]
    if pt.is_timestamp(kind):
        return _instant(value // 1000, kind)
    if pt.is_decimal(kind):
        return _digits(value, kind, ROUND_FLOOR)
    return _plain(kind, value)


def _upper(kind: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if pt.is_string(kind):
        if len(value) <= MAX_STRING:
            return value
        # What was cut off may itself start with the highest character, so keep as many of these as there are.
        cut = MAX_STRING
        while cut < len(value) and value[cut] == _HIGHEST:
            cut += 1
        return value[:cut] + _HIGHEST if cut < len(value) else value
    if pt.is_timestamp(kind):
        # Readers that know that bounds are cut to milliseconds add one themselves; others would lose the last rows.
        return _instant(-(-value // 1000), kind)
    if pt.is_decimal(kind):
        return _digits(value, kind, ROUND_CEILING)
    return _plain(kind, value)


def _plain(kind: pa.DataType, value: Any) -> Any:
    if pt.is_integer(kind) or pt.is_boolean(kind):
        return value
    if pt.is_floating(kind):
        # As Spark writes it: a string.
        return value if math.isfinite(value) else f"{'-' if value < 0 else ''}Infinity"
    if pt.is_date32(kind):
        try:
            return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
        except OverflowError:
            return None
    return None


def _digits(value: Decimal, kind: pa.DataType, rounding: str) -> Decimal | None:
    """The decimal with no more digits than survive a double, and so any JSON parser."""
    rounded = Context(prec=_DIGITS, rounding=rounding).plus(value)
    return rounded if abs(rounded) < Decimal(10) ** (kind.precision - kind.scale) else None


def _instant(milliseconds: int, kind: pa.DataType) -> str | None:
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    text = moment.isoformat(timespec="milliseconds")
    return text if kind.tz is None else f"{text}Z"


def _set(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value
