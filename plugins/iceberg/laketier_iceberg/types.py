"""Arrow types and Iceberg types. The one place that says what becomes of a column, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import children, rebuilt
from laketier.spi import UnsupportedType
from laketier.spi.schema import FIELD_ID
from laketier_iceberg.unread import unreadable

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType

TYPE_TABLE: list[tuple[str, str, str]] = [
    ("bool", "boolean", ""),
    ("int8", "refused", "Iceberg has no 8-bit integers. Cast it to int32."),
    ("int16", "refused", "Iceberg has no 16-bit integers. Cast it to int32."),
    ("int32", "int", ""),
    ("int64", "long", ""),
    ("uint8", "refused", "Iceberg has no unsigned integers. Cast it to int32."),
    ("uint16", "refused", "Iceberg has no unsigned integers. Cast it to int32."),
    ("uint32", "refused", "Iceberg has no unsigned integers. Cast it to int64."),
    ("uint64", "refused", "Iceberg has no unsigned integers. Cast it to decimal128(20, 0)."),
    ("float16", "refused", "Iceberg has no 16-bit floats. Cast it to float32."),
    ("float32", "float", ""),
    ("float64", "double", ""),
    (
        "decimal32, decimal64, decimal128, decimal256",
        "decimal(p, s)",
        (
            "Read back as decimal128. Refused with more than 38 digits, or with a scale that is negative or "
            "larger than the precision."
        ),
    ),
    ("date32", "date", ""),
    ("date64", "refused", "It can hold parts of a day, and Iceberg's date can't. Cast it to date32."),
    ("time32, time64[us]", "time", "Read back as time64[us]."),
    ("time64[ns]", "refused", "Iceberg's time has microseconds. Cast it to time64[us]."),
    ("timestamp[s], timestamp[ms], timestamp[us]", "timestamp", "Read back as timestamp[us]."),
    (
        "timestamp[s, tz], timestamp[ms, tz], timestamp[us, tz]",
        "timestamptz",
        "The instant is kept, the zone's name is not: read back as timestamp[us, UTC].",
    ),
    (
        "timestamp[ns], timestamp[ns, tz]",
        "refused",
        "Tables of version 2 have microseconds. Cast it to timestamp[us].",
    ),
    ("string, large_string, string_view", "string", "Read back as string."),
    ("binary, large_binary, binary_view", "binary", "Read back as binary."),
    ("fixed_size_binary[n]", "fixed[n]", ""),
    ("struct", "struct", "Refused without fields."),
    ("list, large_list", "list", "Read back as list."),
    ("fixed_size_list[n]", "refused", "Iceberg would forget the length. Cast it to list, or keep vectors in Lance."),
    ("list_view, large_list_view", "refused", "Cast it to list."),
    ("map", "map", ""),
    ("union", "refused", "Iceberg has no unions. Make it a struct with a field for each type."),
    ("dictionary", "refused", "Iceberg has no dictionary type. Cast it to the type of its values."),
    ("run_end_encoded", "refused", "Cast it to the type of its values."),
    (
        "duration, interval",
        "refused",
        "Iceberg has no durations. Store a number, for example microseconds as int64.",
    ),
    ("null", "refused", "Tables of version 2 have no unknown type. Give the column a type."),
    ("variant", "refused", "Tables of version 2 have none. Store it as JSON in a string, or its fields as columns."),
    ("extension types", "refused", "Cast it to its storage type."),
]
"""Arrow type, Iceberg type or ``refused``, and what to know. For the documentation."""

_ADVICE = {arrow: note for arrow, iceberg, note in TYPE_TABLE if iceberg == "refused"} | {
    "decimal": "Cast it to decimal128 with at most 38 digits and a scale from 0 to the precision."
}


def check_types(schema: pa.Schema) -> None:
    """Raises `UnsupportedType` for the first column that Iceberg would have to change."""
    for field in schema:
        _check(field.type, field.name)


def _check(kind: pa.DataType, where: str) -> None:
    if is_variant(kind):
        raise UnsupportedType(
            f"a variant of type {kind} can't be stored as one",
            where=where,
            why="Iceberg has variants from version 3 on, and pyiceberg writes version 2; two binaries would not be one",
            fix=_ADVICE["variant"],
        )
    inside = [] if pt.is_fixed_size_list(kind) else children(kind)
    for name, child in inside:
        _check(child.type, f"{where}.{name}")
    if pt.is_struct(kind) and not inside:
        raise UnsupportedType("a struct without fields can't be stored", where=where, fix="Drop the column.")
    if not inside:
        row = _refused_as(kind)
        if row is not None:
            advice = _ADVICE.get(row, "Cast it to a type that Iceberg has.")
            raise UnsupportedType(f"a column of type {kind} can't be stored as it is", where=where, fix=advice)


def is_variant(kind: pa.DataType) -> bool:
    """Whether it is a Parquet variant in Arrow: Arrow's extension type, or the struct that Spark marks as one."""
    if isinstance(kind, pa.BaseExtensionType):
        return str(kind.extension_name) in ("arrow.parquet.variant", "parquet.variant")
    if not pt.is_struct(kind):
        return False
    marked = (kind.field(index).metadata or {} for index in range(kind.num_fields))
    return any(metadata.get(b"variant") == b"true" for metadata in marked)


def _refused_as(kind: pa.DataType) -> str | None:
    """The first cell of the row of `TYPE_TABLE` that refuses ``kind``; None when it is accepted."""
    if isinstance(kind, pa.BaseExtensionType):
        return "extension types"
    if pt.is_decimal(kind):
        fits = kind.precision <= 38 and 0 <= kind.scale <= kind.precision
        return None if fits else "decimal"
    if pt.is_timestamp(kind):
        return "timestamp[ns], timestamp[ns, tz]" if kind.unit == "ns" else None
    if pt.is_time(kind):
        return "time64[ns]" if kind.unit == "ns" else None
    if pt.is_fixed_size_list(kind):
        return "fixed_size_list[n]"
    if pt.is_dictionary(kind):
        return "dictionary"
    if pt.is_run_end_encoded(kind):
        return "run_end_encoded"
    if pt.is_union(kind):
        return "union"
    if pt.is_duration(kind) or pt.is_interval(kind):
        return "duration, interval"
    if pt.is_list_view(kind) or pt.is_large_list_view(kind):
        return "list_view, large_list_view"
    name = {"halffloat": "float16", "date64[ms]": "date64"}.get(str(kind), str(kind))
    return name if name in _ADVICE or not _accepted_scalar(kind) else None


def _accepted_scalar(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (
            pt.is_boolean, pt.is_int32, pt.is_int64, pt.is_float32, pt.is_float64, pt.is_date32,
            pt.is_string, pt.is_large_string, pt.is_string_view,
            pt.is_binary, pt.is_large_binary, pt.is_binary_view, pt.is_fixed_size_binary,
        )
    )  # fmt: skip


def to_iceberg(schema: pa.Schema, primary_key: Sequence[str] = ()) -> Schema:
    """The Iceberg schema for a checked Arrow schema, with provisional field ids; pyiceberg assigns the final ones.

    The columns of ``primary_key`` become identifier fields, which the specification wants to be required: so they are,
    whether or not the Arrow schema lets them be null.
    """
    from pyiceberg.schema import Schema, index_by_name
    from pyiceberg.types import NestedField

    check_types(schema)
    ids = iter(range(1, 1_000_000))
    fields = []
    keys = {}
    for field in schema:
        field_id = next(ids)
        is_key = field.name in primary_key
        if is_key:
            keys[field.name] = field_id
            _check_key(field)
        kind = type_to_iceberg(field.type, ids)
        fields.append(NestedField(field_id, field.name, kind, required=is_key or not field.nullable))
    try:
        made = Schema(*fields, identifier_field_ids=[keys[name] for name in primary_key])
        index_by_name(made)
    except ValueError as error:
        raise UnsupportedType(
            "two fields have the same path, with dots between the names",
            why=str(error),
            fix="Rename one of them in the query.",
        ) from error
    return made


def _check_key(field: pa.Field) -> None:
    if pt.is_floating(field.type) or pt.is_nested(field.type):
        raise UnsupportedType(
            f"column {field.name!r} of type {field.type} can't be part of a primary key",
            why="Iceberg takes neither floats nor nested columns as identifier fields",
            fix="Leave it out of the key, or cast it in the query.",
        )


def type_to_iceberg(kind: pa.DataType, ids: Any) -> IcebergType:
    """One checked Arrow type; nested fields take their ids from ``ids``."""
    from pyiceberg import types as it

    if pt.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return it.StructType(
            *[it.NestedField(next(ids), f.name, type_to_iceberg(f.type, ids), required=not f.nullable) for f in fields]
        )
    if pt.is_list(kind) or pt.is_large_list(kind):
        return it.ListType(next(ids), type_to_iceberg(kind.value_type, ids), not kind.value_field.nullable)
    if pt.is_map(kind):
        key_id, value_id = next(ids), next(ids)
        return it.MapType(
            key_id,
            type_to_iceberg(kind.key_type, ids),
            value_id,
            type_to_iceberg(kind.item_type, ids),
            not kind.item_field.nullable,
        )
    if pt.is_decimal(kind):
        return it.DecimalType(kind.precision, kind.scale)
    if pt.is_timestamp(kind):
        return it.TimestampType() if kind.tz is None else it.TimestamptzType()
    if pt.is_time(kind):
        return it.TimeType()
    if pt.is_fixed_size_binary(kind):
        return it.FixedType(kind.byte_width)
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind):
        return it.StringType()
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind):
        return it.BinaryType()
    plain: dict[pa.DataType, IcebergType] = {
        pa.bool_(): it.BooleanType(),
        pa.int32(): it.IntegerType(),
        pa.int64(): it.LongType(),
        pa.float32(): it.FloatType(),
        pa.float64(): it.DoubleType(),
        pa.date32(): it.DateType(),
    }
    return plain[kind]


def to_arrow(schema: Schema, *, where: str | None = None) -> pa.Schema:
    """The Arrow schema that readers get and writers must write: field ids in the metadata, at every level.

    Raises `UnsupportedType` with the name of a column that Arrow, or this format, has no type for, of table ``where``.
    """
    try:
        return pa.schema([_field(f.name, f.field_type, f.field_id, f.required) for f in schema.fields])
    except UnsupportedType as error:
        error.where = where
        raise


def _field(name: str, kind: IcebergType, field_id: int, required: bool, above: str = "") -> pa.Field:
    arrow = _type(kind, f"{above}{name}")
    return pa.field(name, arrow, nullable=not required, metadata={FIELD_ID: str(field_id).encode()})


def _type(kind: IcebergType, where: str) -> pa.DataType:
    from pyiceberg import types as it

    above = f"{where}."
    match kind:
        case it.StructType():
            return pa.struct([_field(f.name, f.field_type, f.field_id, f.required, above) for f in kind.fields])
        case it.ListType():
            return pa.list_(_field("element", kind.element_type, kind.element_id, kind.element_required, above))
        case it.MapType():
            return pa.map_(
                _field("key", kind.key_type, kind.key_id, True, above),
                _field("value", kind.value_type, kind.value_id, kind.value_required, above),
            )
        case it.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case it.FixedType():
            return pa.binary(len(kind))
    plain: dict[type[IcebergType], pa.DataType] = {
        it.BooleanType: pa.bool_(),
        it.IntegerType: pa.int32(),
        it.LongType: pa.int64(),
        it.FloatType: pa.float32(),
        it.DoubleType: pa.float64(),
        it.DateType: pa.date32(),
        it.TimeType: pa.time64("us"),
        it.TimestampType: pa.timestamp("us"),
        it.TimestamptzType: pa.timestamp("us", "UTC"),
        it.StringType: pa.string(),
        it.BinaryType: pa.binary(),
    }
    found = plain.get(type(kind))
    if found is None:
        raise unreadable(where, str(kind))
    return found


def without_ids(schema: pa.Schema) -> pa.Schema:
    """The schema with no field ids at any level, to compare what two schemas mean."""
    return pa.schema([pa.field(f.name, _bare(f.type), nullable=f.nullable) for f in schema])


def _bare(kind: pa.DataType) -> pa.DataType:
    return rebuilt(kind, lambda f: pa.field(f.name, _bare(f.type), nullable=f.nullable), plain_names=True)
