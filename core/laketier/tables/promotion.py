"""What types of one column become in a table: the one rule, for files that are looked at and for columns that widen.

`promoted` joins two types. It is commutative and associative, so the order in which files are looked at makes no
difference. No value changes by a join: where none holds the values of both, there is no join, and the caller has a
conflict to tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.conform import fits
from laketier.kit.nested import is_list
from laketier.spi import widens

_UNITS = ("s", "ms", "us", "ns")
_MOST_DIGITS = 76
_SHORT_DIGITS = 38
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19, 128: 20}
"""Of integers by their bits (`_bits`)."""
_DOUBLE_BITS = 32
"""Integers of so many bits (`_bits`) are doubles, each of them."""


class Spelling(Enum):
    """How files hold values, which decides what their columns can be read as. Of lines, columns have the types that
    `laketier.codecs.inference` finds, which are few."""

    TYPED = "typed"
    """As they are: Parquet, Arrow, Avro."""
    JSON = "json"
    """Numbers, and texts that may be times. A number is no text."""
    CSV = "csv"
    """Text, of whatever looks like a value."""


def promoted(one: pa.DataType, other: pa.DataType, spelling: Spelling = Spelling.TYPED) -> pa.DataType | None:
    """The least type that holds all values of both, None where there is none. Of structs, fields of the first come
    first."""
    # Arrow calls lists equal that name their elements otherwise, and then the first would decide.
    if one.equals(other, check_metadata=True) or pt.is_null(other):
        return one
    if pt.is_null(one):
        return other
    for rule in (_number, _temporal, _text, _struct, _map, _list):
        found = rule(one, other, spelling)
        if found is not None:
            return found
    return one if one.equals(other) else _as_text(one, other, spelling)


def merged(one: pa.Field, other: pa.Field, spelling: Spelling = Spelling.TYPED) -> pa.Field | None:
    """`promoted` for a field, that may be null where one of them may be."""
    kind = promoted(one.type, other.type, spelling)
    nullable = one.nullable or other.nullable or pt.is_null(one.type) or pt.is_null(other.type)
    return None if kind is None else pa.field(one.name, kind, nullable)


def as_promoted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Its columns with the types that ``schema`` has for them, which its own were promoted to. Raises ``ArrowInvalid``
    for a value that the type does not hold: of a type that a user chose, or a moment that finer units don't reach."""
    fields = [schema.field(name) for name in batch.schema.names]
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type, safe=True)
        for column, field in zip(batch.columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([each.with_nullable(True) for each in fields]))


def widened(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Its columns with the types that ``schema`` has, where these hold all their values and are of another kind, such
    as doubles for integers. The others stay, for `laketier.kit.conform` to judge. Raises ``ArrowInvalid``."""
    kinds = {field.name: field.type for field in schema}
    columns = {
        name: column.cast(kinds[name], safe=True)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if name in kinds and not fits(column.type, kinds[name]) and promoted(column.type, kinds[name]) == kinds[name]
    }
    if not columns:
        return batch
    arrays = [columns.get(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _number(one: pa.DataType, other: pa.DataType, spelling: Spelling) -> pa.DataType | None:
    if not (_is_number(one) and _is_number(other)):
        return None
    if pt.is_decimal(one) or pt.is_decimal(other):
        return _decimal(one, other)
    if widens(one, other) or widens(other, one):
        return max(one, other, key=lambda kind: kind.bit_width)
    if pt.is_floating(one) or pt.is_floating(other):
        exact = all(_bits(kind) <= _DOUBLE_BITS for kind in (one, other) if pt.is_integer(kind))
        # Decoders of text refuse a number that no double is. Files that have types are not looked through for one.
        return pa.float64() if exact or spelling is not Spelling.TYPED else None
    # One has a sign, and does not hold the other.
    bits = max(_bits(one), _bits(other))
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(bits, pa.decimal128(_DIGITS[128], 0))


def _decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    shapes = [_shape(kind) for kind in (one, other)]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    scale = max(scale for _, scale in known)
    digits = max(before for before, _ in known) + scale
    if digits > _MOST_DIGITS:
        return None
    return pa.decimal128(digits, scale) if digits <= _SHORT_DIGITS else pa.decimal256(digits, scale)


def _shape(kind: pa.DataType) -> tuple[int, int] | None:
    """How many digits a number has before the point, and after it."""
    if pt.is_integer(kind):
        return _DIGITS[_bits(kind)], 0
    if pt.is_decimal(kind) and 0 <= kind.scale <= kind.precision:
        return kind.precision - kind.scale, kind.scale
    return None


def _bits(kind: pa.DataType) -> int:
    """Of the least integer with a sign that holds an integer's values: so it is the same whatever else it is joined
    with first."""
    return int(kind.bit_width) * (1 if pt.is_signed_integer(kind) else 2)


def _temporal(one: pa.DataType, other: pa.DataType, _: Spelling) -> pa.DataType | None:
    if pt.is_date(one) and pt.is_date(other):
        return pa.date64()
    if pt.is_time(one) and pt.is_time(other):
        unit = _finest(one.unit, other.unit)
        return pa.time64(unit) if unit in ("us", "ns") else pa.time32(unit)
    kinds = sorted((one, other), key=pt.is_timestamp)
    if pt.is_date(kinds[0]) and pt.is_timestamp(kinds[1]) and kinds[1].tz is None:
        return pa.timestamp(_finest("s" if pt.is_date32(kinds[0]) else "ms", kinds[1].unit))
    if not (pt.is_timestamp(one) and pt.is_timestamp(other)) or (one.tz is None) != (other.tz is None):
        return None
    # The zone says how a moment is shown, and moments of two zones are the same kind of value.
    return pa.timestamp(_finest(one.unit, other.unit), one.tz if one.tz == other.tz else "UTC")


def _text(one: pa.DataType, other: pa.DataType, _: Spelling) -> pa.DataType | None:
    if _is_text(one) and _is_text(other):
        return pa.large_string()
    if _is_binary(one) and _is_binary(other):
        large = pt.is_large_binary(one) or pt.is_large_binary(other)
        return pa.large_binary() if large else pa.binary()
    return None


def _struct(one: pa.DataType, other: pa.DataType, spelling: Spelling) -> pa.DataType | None:
    if not (pt.is_struct(one) and pt.is_struct(other)):
        return None
    fields = merged_fields(_fields(one), _fields(other), spelling)
    return None if any(field is None for field in fields) else pa.struct(fields)


def merged_fields(
    ones: Sequence[pa.Field], others: Sequence[pa.Field], spelling: Spelling = Spelling.TYPED
) -> list[pa.Field | None]:
    """The fields of both by their names, those of the first first. One that the other lacks may be null. None for one
    whose types have no join."""
    left, right = {field.name: field for field in ones}, {field.name: field for field in others}
    return [
        merged(left[name], right[name], spelling)
        if name in left and name in right
        else (left.get(name) or right[name]).with_nullable(True)
        for name in dict.fromkeys([*left, *right])
    ]


def _map(one: pa.DataType, other: pa.DataType, spelling: Spelling) -> pa.DataType | None:
    if not (pt.is_map(one) and pt.is_map(other)):
        return None
    key = promoted(one.key_type, other.key_type, spelling)
    item = merged(one.item_field, other.item_field, spelling)
    if key is None or item is None:
        return None
    return pa.map_(key, item.with_name("value"), keys_sorted=one.keys_sorted and other.keys_sorted)


def _list(one: pa.DataType, other: pa.DataType, spelling: Spelling) -> pa.DataType | None:
    if not (is_list(one) and is_list(other)):
        return None
    element = merged(one.value_field.with_name("element"), other.value_field.with_name("element"), spelling)
    if element is None:
        return None
    # An element's name says nothing: writers choose it. Two that differ become the one of Parquet's own.
    if one.value_field.name == other.value_field.name:
        element = element.with_name(one.value_field.name)
    sizes = [kind.list_size if pt.is_fixed_size_list(kind) else None for kind in (one, other)]
    if sizes[0] is not None and sizes[0] == sizes[1]:
        return pa.list_(element, sizes[0])
    return pa.large_list(element) if pt.is_large_list(one) or pt.is_large_list(other) else pa.list_(element)


def _as_text(one: pa.DataType, other: pa.DataType, spelling: Spelling) -> pa.DataType | None:
    """The last resort, where the file has the text of a value."""
    if spelling is Spelling.JSON:
        spelled = _is_text(one) or pt.is_temporal(one), _is_text(other) or pt.is_temporal(other)
    else:
        spelled = not pt.is_nested(one), not pt.is_nested(other)
    return pa.string() if all(spelled) and spelling is not Spelling.TYPED else None


def _fields(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(index) for index in range(kind.num_fields)]


def _finest(*units: str) -> str:
    return max(units, key=_UNITS.index)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind))
