"""Spark's schemas as Arrow's, and back. The only place that maps types between the two."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from laketier.kit.conform import fits
from laketier.spark.types_apart import refuse_types_apart
from laketier.spi import IncompatibleData, UnsupportedType

# pyspark 4.1 gives UTC unasked; from 4.2 on it asks for the zone.
IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def table_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a table made from a DataFrame's schema: timestamps with a zone are in UTC, and every
    column may be null, as in Spark's own file formats (a stream's columns always may). Metadata is left out.

    Raises `UnsupportedType` for what Spark itself can't give as Arrow, and for what it gives as something else.
    """
    refuse_types_apart(schema)
    fields = []
    for field in schema.fields:
        try:
            arrow = to_arrow_schema(StructType([field]), **IN_UTC).field(0)
        except (PySparkException, ValueError) as error:  # pyarrow has no list of nulls that holds none: `array()`
            raise UnsupportedType(
                f"column {field.name!r} is {field.dataType.simpleString()}, which Spark can't give as Arrow",
                why=(error.getMessage() if isinstance(error, PySparkException) else None) or str(error),
                fix="Cast it in the query, for example to string.",
            ) from error
        fields.append(pa.field(field.name, _nullable(arrow.type), nullable=True))
    return pa.schema(fields)


def _nullable(kind: pa.DataType) -> pa.DataType:
    """The type with every nested field nullable and without metadata, except a map's keys."""
    if pt.is_struct(kind):
        return pa.struct([pa.field(f.name, _nullable(f.type)) for f in kind])
    if pt.is_list(kind):
        return pa.list_(pa.field("element", _nullable(kind.value_type)))
    if pt.is_map(kind):
        return pa.map_(
            pa.field("key", _nullable(kind.key_type), nullable=False), pa.field("value", _nullable(kind.item_type))
        )
    return kind


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema in which a table of ``schema`` is read. Raises `UnsupportedType`."""
    fields = []
    for field in schema:
        kind = _readable(field.type)
        try:
            arrow = pa.schema([pa.field(field.name, kind, field.nullable)])
            spark: StructType = from_arrow_schema(arrow, prefer_timestamp_ntz=True)
        except PySparkException as error:
            raise UnsupportedType(
                f"column {field.name!r} is {field.type}, which Spark has no type for",
                fix="Read the other columns, or read the table with DuckDB or Polars.",
            ) from error
        fields.extend(spark.fields)
    return StructType(fields)


def reading_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that batches for Spark must have, to the letter (nullability too)."""
    arrow: pa.Schema = to_arrow_schema(schema, **IN_UTC)
    return arrow


_WIDER = (
    (pt.is_uint8, pa.int16()),
    (pt.is_uint16, pa.int32()),
    (pt.is_uint32, pa.int64()),
    (pt.is_uint64, pa.decimal128(20, 0)),
    (pt.is_float16, pa.float32()),
    (pt.is_date64, pa.date32()),
    (pt.is_time, pa.time64("ns")),
    (pt.is_string_view, pa.string()),
    (pt.is_binary_view, pa.binary()),
    (pt.is_fixed_size_binary, pa.binary()),
    (pt.is_duration, pa.duration("us")),
)


def _readable(kind: pa.DataType) -> pa.DataType:
    """The type in which Spark reads ``kind``: the next one that holds every value of it."""
    for matches, wider in _WIDER:
        if matches(kind):
            return wider
    if pt.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pt.is_dictionary(kind):
        return _readable(kind.value_type)
    if pt.is_struct(kind):
        return pa.struct([f.with_type(_readable(f.type)) for f in kind])
    if pt.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(_readable(kind.key_type)), kind.item_field.with_type(_readable(kind.item_type))
        )
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_readable(kind.value_type)))
    return kind


def for_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """``batch`` in exactly ``schema`` (see `reading_schema`): columns by name, values unchanged.

    Raises `IncompatibleData` for a value that Spark's type can't hold, and for null where ``schema`` has none.
    """
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if not column.type.equals(field.type):
            column = _cast(column, field)
        if column.null_count and not field.nullable:
            raise IncompatibleData(f"column {field.name!r} holds null, and the schema asked for says it can't")
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if not (fits(column.type, field.type) or _readable(column.type).equals(field.type) or pt.is_nested(field.type)):
        raise IncompatibleData(
            f"column {field.name!r} is {column.type}, and {field.type} was asked for",
            fix="Read it as it is, and cast it in the query.",
        )
    try:
        return column.cast(field.type, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise IncompatibleData(
            f"column {field.name!r} holds values that Spark's {field.type} can't hold",
            why=str(error),
            fix="Read the other columns, or read the table with DuckDB or Polars.",
        ) from error
