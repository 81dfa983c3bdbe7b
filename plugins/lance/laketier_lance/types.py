"""The fate of Arrow types in Lance, found by round trips through pylance 14.0.2 (tests/test_lance_types.py)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import children
from laketier.spi import UnsupportedType

TYPE_TABLE: list[tuple[str, str, str]] = [
    ("null", "null", ""),
    ("bool", "bool", ""),
    ("int8, int16, int32, int64", "the same", ""),
    ("uint8, uint16, uint32, uint64", "the same", ""),
    ("float16, float32, float64", "the same", ""),
    ("decimal128, decimal256", "the same", ""),
    ("decimal32, decimal64", "refused", "cast to decimal128"),
    ("string, large_string", "the same", ""),
    ("binary, large_binary, fixed_size_binary", "the same", ""),
    ("string_view, binary_view", "refused", "Lance would turn it into string or binary: cast it"),
    ("date32, date64", "the same", ""),
    ("time32, time64", "the same", ""),
    ("timestamp (s, ms, us, ns; with and without a zone)", "the same", "zones are kept by name"),
    ("duration (s, ms, us, ns)", "the same", ""),
    ("interval (month_day_nano)", "refused", "store months, days and nanoseconds in columns of their own"),
    ("list, large_list", "the same", ""),
    ("list_view, large_list_view", "refused", "cast to list"),
    (
        "fixed_size_list of bool, integers, floats, dates, times, timestamps, durations, decimals",
        "the same",
        "vectors; also nested in each other",
    ),
    ("fixed_size_list of anything else", "refused", "Lance panics or loses lengths: use list"),
    ("fixed_size_list of size 0", "refused", "use list"),
    ("struct", "the same", "a null struct needs lance.data-storage-version 2.1 or newer"),
    ("struct without fields", "refused", "give it a field"),
    ("map", "the same", "needs lance.data-storage-version 2.2"),
    ("map with sorted keys", "refused", "Lance does not keep that promise: declare the map without it"),
    ("union", "refused", "make it a struct with a field for each type"),
    ("dictionary", "refused", "cast to the value type; Lance encodes repeated values by itself"),
    ("run_end_encoded", "refused", "decode it"),
    ("extension arrow.uuid", "the same", ""),
    ("any other extension", "refused", "cast to its storage type"),
]
"""(Arrow types, what Lance holds or ``refused``, note)."""

_RESERVED = {
    *("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"),
    *("_distance", "_score"),
}
_EXTENSION_NAME = b"ARROW:extension:name"


def check_types(schema: pa.Schema, file_version: str) -> None:
    """Raise `UnsupportedType` for the first column that Lance, with data files of ``file_version``, would refuse,
    change or damage."""
    for field in schema:
        if "." in field.name or "`" in field.name or field.name in _RESERVED or not field.name:
            raise UnsupportedType(
                f"{field.name!r} can't be the name of a column in Lance",
                why="names with a dot mean nested fields, Lance reads no column with a backtick in its name, "
                "and computes _rowid and the like by itself",
                fix="Rename the column.",
            )
        _check(field, field.name, file_version)


def _check(field: pa.Field, path: str, file_version: str) -> None:
    advice = _advice(field, file_version)
    if advice is not None:
        raise UnsupportedType(f"Lance can't hold column {path!r} of type {field.type}", fix=advice)
    for name, child in children(field.type):
        _check(child, f"{path}.{name}", file_version)


def _advice(field: pa.Field, file_version: str) -> str | None:
    kind = field.type
    extension = _extension_name(field)
    if extension is not None:
        return None if extension == "arrow.uuid" else f"Cast {extension} to its storage type."
    if pt.is_dictionary(kind):
        return f"Cast it to {kind.value_type}; Lance encodes repeated values by itself."
    if pt.is_struct(kind):
        return None if kind.num_fields else "Give the struct a field, or leave the column out."
    if pt.is_fixed_size_list(kind):
        if kind.list_size == 0:
            return "Use list."
        return None if _fits_vector(kind.value_type) else f"Use list<{kind.value_type}>."
    if pt.is_map(kind):
        if file_version in ("2.0", "2.1"):
            return "Create the table with lake.lance.data-storage-version = 2.2, or use list<struct<key, value>>."
        return "Declare the map without sorted keys." if kind.keys_sorted else None
    return None if pt.is_list(kind) or pt.is_large_list(kind) else _advice_for_scalar(kind)


def _advice_for_scalar(kind: pa.DataType) -> str | None:
    if pt.is_decimal32(kind) or pt.is_decimal64(kind):
        return f"Cast it to decimal128({kind.precision}, {kind.scale})."
    if pt.is_string_view(kind):
        return "Cast it to string."
    if pt.is_binary_view(kind):
        return "Cast it to binary."
    if pt.is_null(kind) or pt.is_boolean(kind) or _fits_vector(kind) or _is_bytes(kind):
        return None
    if pt.is_union(kind):
        return "Make it a struct with a field for each type."
    if pt.is_list_view(kind) or pt.is_large_list_view(kind):
        return f"Cast it to list<{kind.value_type}>."
    if pt.is_interval(kind):
        return "Store months, days and nanoseconds in columns of their own."
    return "Cast it to a type that Lance holds; the table of types in the docs lists them."


def _extension_name(field: pa.Field) -> str | None:
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    name = (field.metadata or {}).get(_EXTENSION_NAME)
    return None if name is None else name.decode()


def _is_bytes(kind: pa.DataType) -> bool:
    return (
        pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_fixed_size_binary(kind)
    )


def _fits_vector(kind: pa.DataType) -> bool:
    if pt.is_fixed_size_list(kind):
        return _fits_vector(kind.value_type)
    return (
        pt.is_boolean(kind)
        or pt.is_integer(kind)
        or pt.is_floating(kind)
        or pt.is_date(kind)
        or pt.is_time(kind)
        or pt.is_timestamp(kind)
        or pt.is_duration(kind)
        or pt.is_decimal128(kind)
        or pt.is_decimal256(kind)
    )
