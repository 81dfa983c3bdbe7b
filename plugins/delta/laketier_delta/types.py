"""The Delta type of each Arrow type, and the refused types and names."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from laketier.spi import UnsupportedType

TYPE_TABLE: list[tuple[str, str, str]] = [
    ("bool", "boolean", ""),
    ("int8", "byte", ""),
    ("int16", "short", ""),
    ("int32", "integer", ""),
    ("int64", "long", ""),
    ("uint8", "refused", "Delta has no unsigned integers: cast to int16."),
    ("uint16", "refused", "Delta has no unsigned integers: cast to int32."),
    ("uint32", "refused", "Delta has no unsigned integers: cast to int64."),
    ("uint64", "refused", "Delta has no unsigned integers: cast to decimal128(20, 0)."),
    ("float16", "refused", "Delta has no half floats: cast to float32."),
    ("float32", "float", ""),
    ("float64", "double", ""),
    ("decimal32(p, s)", "decimal(p,s)", "Read back as decimal128."),
    ("decimal64(p, s)", "decimal(p,s)", "Read back as decimal128."),
    ("decimal128(p, s)", "decimal(p,s)", "0 <= s <= p; other scales are refused, and decimals as partition columns."),
    ("decimal256(p, s)", "decimal(p,s)", "Up to 38 digits, read back as decimal128; more are refused."),
    ("string, large_string, string_view", "string", "Read back as string."),
    ("binary, large_binary, binary_view", "binary", "Read back as binary."),
    ("fixed_size_binary(n)", "refused", "Delta does not keep the length: cast to binary."),
    ("date32, date64", "date", "Read back as date32; a date64 that is not midnight is refused when written."),
    ("time32, time64", "refused", "Delta has no time of day: cast to int64 or string."),
    ("timestamp(s | ms | us, tz)", "timestamp", "Instants in microseconds, read back in UTC: the zone's name is lost."),
    ("timestamp(s | ms | us)", "timestamp_ntz", "The table gets reader 3, writer 7 and the feature timestampNtz."),
    ("timestamp(ns, ...)", "refused", "Delta holds microseconds: cast to timestamp('us'), with tz or without."),
    ("duration, interval", "refused", "Delta has no durations: cast to int64."),
    ("dictionary", "refused", "Delta does not keep dictionaries: cast to the type of the values."),
    ("run_end_encoded", "refused", "Delta does not keep runs: decode to the type of the values."),
    ("list, large_list", "array", "Read back as list."),
    ("fixed_size_list", "refused", "Delta does not keep the size: cast to list, or use the lance format for vectors."),
    ("list_view, large_list_view", "refused", "Cast to list."),
    ("struct", "struct", "At least one field; names as for columns."),
    ("map", "map", ""),
    ("null", "refused", "Delta can't store a column without a type: cast to the type that it will have."),
    ("extension, union", "refused", "Cast to the storage type, or to a struct."),
]
"""(Arrow type, Delta type or "refused", note). The docs print it; a test holds it against deltalake."""

_FORBIDDEN_IN_NAMES = " ,;{}()\n\t="


def delta_schema(schema: pa.Schema) -> pa.Schema:
    """``schema`` as a Delta table gives it back: what readers get and writers must write.

    Raises `UnsupportedType` with advice for what Delta would have to change, and for names that Delta's readers on
    the JVM refuse.
    """
    return pa.schema([_field(field, (field.name,)) for field in schema])


def _field(field: pa.Field, path: tuple[str, ...]) -> pa.Field:
    _check_name(field.name, path)
    return pa.field(field.name, _type(field.type, path), field.nullable)


def _type(kind: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
    for matches, target in _KEPT:
        if matches(kind):
            return target or kind
    if pt.is_decimal(kind):
        if kind.precision > 38 or not 0 <= kind.scale <= kind.precision:
            raise _refused(path, kind, "Delta's decimals have up to 38 digits and a scale from 0 to that: cast it.")
        return pa.decimal128(kind.precision, kind.scale)
    if pt.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    if pt.is_list(kind) or pt.is_large_list(kind):
        item = kind.value_field
        return pa.list_(pa.field("element", _type(item.type, (*path, "element")), item.nullable))
    if pt.is_struct(kind):
        return _struct(kind, path)
    if pt.is_map(kind):
        key = pa.field("key", _type(kind.key_type, (*path, "key")), nullable=False)
        value = pa.field("value", _type(kind.item_type, (*path, "value")), kind.item_field.nullable)
        return pa.map_(key, value)
    raise _refused(path, kind, next((note for matches, note in _REFUSED if matches(kind)), "Cast it in the query."))


def _struct(kind: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
    fields = [kind.field(i) for i in range(kind.num_fields)]
    if not fields:
        raise _refused(path, kind, "A struct needs a field: drop the column.")
    folded: set[str] = set()
    for child in fields:
        if child.name.lower() in folded:
            raise _refused(path, kind, f"Rename {child.name!r}: two fields differ by case only, or are the same.")
        folded.add(child.name.lower())
    return pa.struct([_field(child, (*path, child.name)) for child in fields])


def _check_name(name: str, path: tuple[str, ...]) -> None:
    bad = sorted({character for character in name if character in _FORBIDDEN_IN_NAMES})
    if not name or bad:
        raise UnsupportedType(
            f"column {'.'.join(path)!r} has a name that Delta can't hold",
            why=f"Delta's readers on the JVM refuse {bad}" if bad else "it is empty",
            fix="Rename it in the query.",
        )


def _refused(path: tuple[str, ...], kind: pa.DataType, advice: str) -> UnsupportedType:
    return UnsupportedType(f"column {'.'.join(path)!r} is {kind}, which a Delta table can't hold exactly", fix=advice)


def _advice(name: str) -> str:
    return next(note for arrow, _, note in TYPE_TABLE if arrow == name)


_KEPT = (
    (pt.is_boolean, None),
    (pt.is_signed_integer, None),
    (pt.is_float32, None),
    (pt.is_float64, None),
    (pt.is_string, None),
    (pt.is_large_string, pa.string()),
    (pt.is_string_view, pa.string()),
    (pt.is_binary, None),
    (pt.is_large_binary, pa.binary()),
    (pt.is_binary_view, pa.binary()),
    (pt.is_date, pa.date32()),
)

_REFUSED = (
    (pt.is_uint8, _advice("uint8")),
    (pt.is_uint16, _advice("uint16")),
    (pt.is_uint32, _advice("uint32")),
    (pt.is_uint64, _advice("uint64")),
    (pt.is_float16, _advice("float16")),
    (pt.is_fixed_size_binary, _advice("fixed_size_binary(n)")),
    (pt.is_time, _advice("time32, time64")),
    (pt.is_timestamp, _advice("timestamp(ns, ...)")),
    (pt.is_duration, _advice("duration, interval")),
    (pt.is_interval, _advice("duration, interval")),
    (pt.is_dictionary, _advice("dictionary")),
    (pt.is_run_end_encoded, _advice("run_end_encoded")),
    (pt.is_fixed_size_list, _advice("fixed_size_list")),
    (pt.is_list_view, _advice("list_view, large_list_view")),
    (pt.is_large_list_view, _advice("list_view, large_list_view")),
    (pt.is_null, _advice("null")),
    (pt.is_union, _advice("extension, union")),
    (lambda kind: isinstance(kind, pa.BaseExtensionType), _advice("extension, union")),
)
