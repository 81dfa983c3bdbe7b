"""The stored type of each Arrow type in this format, and the refused types.

Files carry the Arrow schema, so what is accepted comes back as the very type it was. The second column says what
readers without Arrow see.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import children
from laketier.spi import UnsupportedType

TYPE_TABLE: list[tuple[str, str, str]] = [
    ("bool", "BOOLEAN", ""),
    ("int8, int16, int32, int64", "INT with its width", ""),
    ("uint8, uint16, uint32, uint64", "INT, unsigned", "Spark widens them; uint64 becomes decimal(20, 0) there"),
    ("float16", "FLOAT16", "Spark can't read it"),
    ("float32, float64", "FLOAT, DOUBLE", ""),
    ("decimal32, decimal64, decimal128, decimal256", "DECIMAL", "precision up to 38, scale not negative"),
    ("string, large_string, string_view", "STRING", ""),
    ("binary, large_binary, binary_view", "BYTE_ARRAY", ""),
    ("fixed_size_binary", "FIXED_LEN_BYTE_ARRAY", ""),
    ("date32", "DATE", ""),
    ("time32, time64", "TIME", "seconds are stored as milliseconds, which is exact"),
    (
        "timestamp",
        "TIMESTAMP, adjusted to UTC if it has a zone",
        "seconds are stored as milliseconds, which is exact; Spark reads ns only as integers",
    ),
    ("list, large_list", "LIST", ""),
    ("fixed_size_list", "LIST", "its size is kept by Arrow readers; Spark sees an array"),
    ("struct", "group", "needs at least one field"),
    ("map", "MAP", ""),
    ("null", "refused", "give the column a type, for example string"),
    ("date64", "refused", "Parquet has days only: use date32, or timestamp[ms] for moments"),
    ("duration", "refused", "other readers would see plain integers: use int64 and name the unit"),
    ("month_day_nano_interval", "refused", "Parquet can't hold it: use int64 columns"),
    ("dictionary", "refused", "use its value type; Parquet encodes repeated values as a dictionary by itself"),
    ("run_end_encoded", "refused", "use its value type; Parquet encodes runs by itself"),
    ("list_view, large_list_view", "refused", "use list"),
    ("decimal of precision > 38", "refused", "DuckDB and others would read it as double: use string"),
    ("decimal of negative scale", "refused", "use scale 0"),
    ("fixed_size_list of size 0", "refused", "use list: Arrow could not read the file again"),
    (
        "fixed_size_list that is not null, in a struct that may be",
        "refused",
        "let the list be null as well: Arrow could not read a file in which the struct is",
    ),
    ("struct without fields", "refused", "drop the column, or use bool"),
    ("union", "refused", "Parquet has none: use a struct with a field for each type"),
    ("extension types", "refused", "use the storage type"),
]
"""(Arrow type, what it is in a file or "refused", note). For refused ones the note is the advice."""

_ADVICE = {arrow: note for arrow, becomes, note in TYPE_TABLE if becomes == "refused"}


def check_types(schema: pa.Schema) -> None:
    """Raise `UnsupportedType` for the first column that can't be stored unchanged, at any level."""
    for column in schema:
        _check(column.name, column, maybe_missing=False)


def check_partition_type(column: str, kind: pa.DataType) -> None:
    """Raise `UnsupportedType` for a partition column whose values have no exact text that every reader parses."""
    text = pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)
    moment = pt.is_timestamp(kind) and kind.unit != "ns"
    if not (text or moment or pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_date(kind) or _is_decimal(kind)):
        raise UnsupportedType(
            f"column {column!r} of type {kind} can't be a partition column",
            why="its values have no text that every reader turns back into them",
            fix="Partition by a string, integer, boolean, date, timestamp (not ns) or decimal column, or by hour(ts).",
        )


def _check(path: str, field: pa.Field, *, maybe_missing: bool) -> None:
    """``maybe_missing``: the field is that of a struct which may be null."""
    kind = field.type
    reason = _refusal(kind)
    if maybe_missing and not field.nullable and pt.is_fixed_size_list(kind):
        reason = "fixed_size_list that is not null, in a struct that may be"
    if reason is not None:
        raise UnsupportedType(
            f"column {path!r} has type {kind}, which this format does not store",
            fix=f"{_ADVICE[reason][0].upper()}{_ADVICE[reason][1:]}.",
        )
    below = pt.is_struct(kind) and (field.nullable or maybe_missing)
    for name, child in children(kind):
        _check(f"{path}.{name}", child, maybe_missing=below)


def _refusal(kind: pa.DataType) -> str | None:
    """The row of the table that refuses ``kind``."""
    if isinstance(kind, pa.BaseExtensionType):
        return "extension types"
    if _is_decimal(kind):
        if kind.precision > 38:
            return "decimal of precision > 38"
        return "decimal of negative scale" if kind.scale < 0 else None
    if pt.is_struct(kind) and kind.num_fields == 0:
        return "struct without fields"
    if pt.is_fixed_size_list(kind) and kind.list_size == 0:
        return "fixed_size_list of size 0"
    refused = {
        "null": pt.is_null,
        "date64": pt.is_date64,
        "duration": pt.is_duration,
        "month_day_nano_interval": pt.is_interval,
        "union": pt.is_union,
        "dictionary": pt.is_dictionary,
        "run_end_encoded": pt.is_run_end_encoded,
        "list_view, large_list_view": lambda k: pt.is_list_view(k) or pt.is_large_list_view(k),
    }
    return next((row for row, matches in refused.items() if matches(kind)), None)


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(pt.is_decimal(kind))
