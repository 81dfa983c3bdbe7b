"""What a table has to hold, kept in memory, and how it is compared with what a reader finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from laketier_conformance.column_types import alike
from laketier_conformance.expect import columns as told_columns
from laketier_conformance.expect import of_rows

Row = Mapping[str, Any]
"""Values by the names that their columns were made with: a rename changes no row."""
_FEW = 6


@dataclass(frozen=True)
class Column:
    """``key``: the name that it was made with."""

    key: str
    field: pa.Field


@dataclass(frozen=True)
class State:
    """Columns and rows at one moment; rows in no order, and equal ones as often as they are there."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...] = ()

    @classmethod
    def of(cls, schema: pa.Schema) -> State:
        """Without a row."""
        return cls(tuple(Column(field.name, field) for field in schema))

    @property
    def schema(self) -> pa.Schema:
        """The columns, by the names that they have now."""
        return pa.schema([column.field for column in self.columns])

    @property
    def ids(self) -> list[int]:
        """Those that are there, each once."""
        return sorted({row["id"] for row in self.rows})

    def name(self, key: str) -> str:
        """The name that a column has now."""
        return next(column.field.name for column in self.columns if column.key == key)

    def without(self, ids: Collection[int]) -> State:
        """The others."""
        return replace(self, rows=tuple(row for row in self.rows if row["id"] not in ids))

    def plus(self, rows: Sequence[Row]) -> State:
        """These, too."""
        return replace(self, rows=(*self.rows, *rows))

    def values(self, rows: Sequence[Row], names: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
        """Rows in the columns of now, or in some of them."""
        keys = {column.field.name: column.key for column in self.columns}
        wanted = [keys[name] for name in (keys if names is None else names)]
        return [tuple(row.get(key) for key in wanted) for row in rows]

    def table(self, schema: pa.Schema) -> pa.Table:
        """The rows as Arrow, of types that a format reads them by."""
        found = list(zip(*self.values(self.rows, schema.names), strict=True)) or [()] * len(schema)
        return pa.table([pa.array(each, field.type) for each, field in zip(found, schema, strict=True)], schema=schema)


def values_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows that were read."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*table.to_pydict().values(), strict=True))


def in_order(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Each row as a text: what can't be sorted or hashed can be compared."""
    return sorted(map(repr, rows))


def compare(found: Sequence[tuple[Any, ...]], expected: Sequence[tuple[Any, ...]], what: str) -> None:
    """The same rows, in any order, each as often."""
    __tracebackhide__ = True
    compare_texts(in_order(found), in_order(expected), what)


def compare_texts(found: list[str], expected: list[str], what: str) -> None:
    """The same of rows that are texts in their order already."""
    __tracebackhide__ = True
    if found != expected:
        raise AssertionError(f"{what}: {of_rows(found, expected)}")


def same_columns(found: pa.Schema, expected: pa.Schema) -> bool:
    """Whether the names are the same, in their order, and the types hold the same values."""
    return found.names == expected.names and all(
        alike(one.type, other.type) for one, other in zip(found, expected, strict=True)
    )


def compare_columns(found: pa.Schema, expected: pa.Schema, what: str) -> None:
    """These are the columns."""
    __tracebackhide__ = True
    if not same_columns(found, expected):
        raise AssertionError(f"{what}: expected the columns {told_columns(expected)}, found {told_columns(found)}")


def are_among(found: Sequence[tuple[Any, ...]], all_rows: Sequence[tuple[Any, ...]], what: str) -> None:
    """Each of ``found`` is there as often, at least."""
    __tracebackhide__ = True
    extra = sorted((Counter(map(repr, found)) - Counter(map(repr, all_rows))).elements())
    if extra:
        raise AssertionError(f"{what}: expected rows of the table, found {', '.join(extra[:_FEW])}")


def named(ids: Collection[int]) -> str:
    """Rows, for a sentence."""
    told = sorted(ids)
    if not told:
        return "no rows"
    if len(told) > _FEW:
        return f"{len(told)} rows from {told[0]} to {told[-1]}"
    return f"row{'s' if len(told) > 1 else ''} {', '.join(map(str, told))}"
