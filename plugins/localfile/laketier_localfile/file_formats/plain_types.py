"""What other tools call the types of a table whose files do not say them: for the lines that open its files."""

from __future__ import annotations

import glob
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import is_list

_WORDS: list[tuple[str, str, str]] = [
    ("is_boolean", "BOOLEAN", "BOOLEAN"),
    ("is_int8", "TINYINT", "TINYINT"),
    ("is_int16", "SMALLINT", "SMALLINT"),
    ("is_int32", "INTEGER", "INT"),
    ("is_int64", "BIGINT", "BIGINT"),
    ("is_uint8", "UTINYINT", "SMALLINT"),
    ("is_uint16", "USMALLINT", "INT"),
    ("is_uint32", "UINTEGER", "BIGINT"),
    ("is_uint64", "UBIGINT", "DECIMAL(20, 0)"),
    ("is_float16", "FLOAT", "FLOAT"),
    ("is_float32", "FLOAT", "FLOAT"),
    ("is_float64", "DOUBLE", "DOUBLE"),
    ("is_date", "DATE", "DATE"),
    ("is_time", "TIME", "STRING"),
]


def below(location: str, suffix: str = "") -> str:
    """The pattern of all files of a table whose names end so. A folder above it may have a bracket in its name."""
    return f"{glob.escape(location)}/**/*{suffix}"


def files_of(location: str, suffixes: Sequence[str]) -> str:
    """Python that lists a table's files, whatever codecs they have. Manifests, and what is staged or superseded, are in
    folders whose names begin with _."""
    start = len(location)
    return (
        f"[file for file in glob.glob({below(location)!r}, recursive=True) "
        f"if file.endswith({tuple(suffixes)!r}) and '/_' not in file[{start}:]]"
    )


def spark_glob(suffixes: Sequence[str]) -> str:
    """The same for Spark, which passes over folders whose names begin with _ by itself."""
    return f"*{{{','.join(suffixes)}}}"


def duckdb_columns(schema: pa.Schema) -> dict[str, str]:
    """Column → DuckDB's type."""
    return {field.name: _duckdb(field.type) for field in schema}


def spark_columns(schema: pa.Schema) -> str:
    """A table's columns as Spark's DDL."""
    return ", ".join(f"`{field.name.replace('`', '``')}` {spark_type(field.type)}" for field in schema)


def _duckdb(kind: pa.DataType) -> str:
    if pt.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pt.is_timestamp(kind):
        return "TIMESTAMPTZ" if kind.tz is not None else "TIMESTAMP_NS" if kind.unit == "ns" else "TIMESTAMP"
    if is_list(kind):
        return f"{_duckdb(kind.value_type)}[]"
    if pt.is_map(kind):
        return f'STRUCT("key" {_duckdb(kind.key_type)}, "value" {_duckdb(kind.item_type)})[]'
    if pt.is_struct(kind):
        fields = (kind.field(i) for i in range(kind.num_fields))
        inside = ", ".join('"{}" {}'.format(f.name.replace('"', '""'), _duckdb(f.type)) for f in fields)
        return f"STRUCT({inside})"
    return next((duckdb for test, duckdb, _ in _WORDS if getattr(pt, test)(kind)), "VARCHAR")


def spark_type(kind: pa.DataType) -> str:
    """Spark's type of a column."""
    if pt.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pt.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz is not None else "TIMESTAMP_NTZ"
    if is_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pt.is_map(kind):
        return f"ARRAY<STRUCT<`key`: {spark_type(kind.key_type)}, `value`: {spark_type(kind.item_type)}>>"
    if pt.is_struct(kind):
        fields = (kind.field(i) for i in range(kind.num_fields))
        return "STRUCT<{}>".format(", ".join(f"`{f.name.replace('`', '``')}`: {spark_type(f.type)}" for f in fields))
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind) or pt.is_fixed_size_binary(kind):
        return "BINARY"
    return next((spark for test, _, spark in _WORDS if getattr(pt, test)(kind)), "STRING")
