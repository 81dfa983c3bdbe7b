"""Values as text, and back, exactly: what JSON lines and CSV share. Vectorised over Arrow."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.codecs.text_types import cast_text
from laketier.spi import UnstorableRows

TEXT = pa.large_string()

_YEARS = "a day outside the years 1 to 9999"
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY = 86_400


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text already."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values are bytes, which are written as base64."""
    binary = pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind)
    return bool(binary or pt.is_fixed_size_binary(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether values are integers or floats. Decimals are none: most readers would take them for floats."""
    return bool(pt.is_integer(kind) or pt.is_floating(kind))


def text_of(array: pa.Array, where: str) -> pa.Array:
    """Each value as text, null for null: numbers as the shortest digits that mean them, ``true``, ISO dates and times,
    moments with a zone in UTC with a ``Z``, bytes as base64. Raises `UnstorableRows` for a day outside the years 1 to
    9999, naming column ``where``."""
    kind = array.type
    if is_text(kind):
        return array.cast(TEXT)
    if is_bytes(kind):
        return pa.array([None if v is None else base64.b64encode(v).decode("ascii") for v in array.to_pylist()], TEXT)
    if pt.is_floating(kind):
        return _float_text(array.cast(pa.float32()) if pt.is_float16(kind) else array)
    if pt.is_date32(kind):
        _refuse_far(array.cast(pa.int32()), _FIRST_DAY, _LAST_DAY, where)
        return array.cast(TEXT)
    if pt.is_timestamp(kind):
        return _moment_text(array, where)
    return array.cast(TEXT)


def _float_text(array: pa.Array) -> pa.Array:
    text = array.cast(TEXT)
    if pc.any(pc.equal(array, 0)).as_py():  # -0 would be an integer, which has no sign then
        text = pc.if_else(pc.equal(text, pa.scalar("-0", TEXT)), pa.scalar("-0.0", TEXT), text)
    finite = pc.is_finite(array)
    if pc.all(finite).as_py() is False:
        infinite = pc.if_else(pc.greater(array, 0), "Infinity", "-Infinity").cast(TEXT)
        odd = pc.if_else(pc.is_nan(array), pa.scalar("NaN", TEXT), infinite)
        text = pc.if_else(finite, text, odd)
    return text


def _moment_text(array: pa.Array, where: str) -> pa.Array:
    unit, zone = array.type.unit, array.type.tz
    second = _PER_SECOND[unit]
    first, last, what = _FIRST_DAY * _DAY * second, (_LAST_DAY + 1) * _DAY * second - 1, _YEARS
    if unit == "ns":  # whose years are 1677 to 2262, and whose first second has a beginning that no reader can add to
        first, last, what = -(2**63 // second) * second, 2**63 - 1, "a moment before 1677-09-21 00:12:44"
    _refuse_far(array.view(pa.int64()), first, last, where, what)
    text = pc.replace_substring(array.view(pa.timestamp(unit)).cast(TEXT), " ", "T")
    return text if zone is None else pc.binary_join_element_wise(text, pa.scalar("Z", TEXT), pa.scalar("", TEXT))


def _refuse_far(numbers: pa.Array, first: int, last: int, where: str, what: str = _YEARS) -> None:
    ends = pc.min_max(numbers).as_py()
    if ends["min"] is not None and (ends["min"] < first or ends["max"] > last):
        raise UnstorableRows(
            f"column {where!r} has {what}",
            why="text of it is not read back by other readers",
            fix="Leave such rows out in the query, or tier into a table of Parquet files.",
        )


def values_of(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Undo `text_of` for what a reader gave: text, numbers or booleans."""
    if array.type.equals(kind):
        return array
    if is_bytes(kind):
        decoded: list[Any] = [None if v is None else base64.b64decode(v, validate=True) for v in array.to_pylist()]
        return pa.array(decoded, kind)
    if pt.is_temporal(kind):
        return cast_text(pa.chunked_array([array]), kind).combine_chunks()
    return array.cast(kind, safe=not pt.is_float16(kind))
