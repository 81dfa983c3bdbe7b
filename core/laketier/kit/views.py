"""Rows with views of text or bytes, which Arrow can neither filter nor take from, at any level."""

from __future__ import annotations

from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import rebuilt

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def only(rows: Rows, condition: Any) -> Rows:
    """The rows for which ``condition`` is true, as the ``filter`` of Arrow takes it, in the schema of ``rows``."""
    schema = rows.schema  # a table makes another object of it each time
    plain = schema_without_views(schema)
    return rows.filter(condition) if plain is schema else rows.cast(plain).filter(condition).cast(schema)


def schema_without_views(schema: pa.Schema) -> pa.Schema:
    """A schema for the same values that Arrow can filter, take and copy; ``schema`` itself where it can. A copy of some
    views keeps what all of them look at."""
    plain = pa.schema([_plain(field) for field in schema], schema.metadata)
    return schema if plain.equals(schema) else plain


def without_views(kind: pa.DataType) -> pa.DataType:
    """The type of the same values without views, at any level."""
    if pt.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pt.is_binary_view(kind) else rebuilt(kind, _plain)


def _plain(field: pa.Field) -> pa.Field:
    return field.with_type(without_views(field.type))
