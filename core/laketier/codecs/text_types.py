"""Types of text: the types that JSON and CSV have values for, and casts from text that change no value.

Numbers, dates and times written as text mean the same wherever they stand, so one rule reads them for both.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.codecs.decoding import BadValue
from laketier.kit.nested import rebuilt
from laketier.spi import ConfigError

_TIME = r"^\d\d:\d\d(:\d\d(\.\d{1,9})?)?$"
_QUOTED = 60


def check_text_types(schema: pa.Schema, *, nested: bool, what: str, prefix: str, where: str | None) -> None:
    """Raise `ConfigError` for columns of types that ``what`` has no value for, or several: bytes (as they are, base64
    or hex), durations, maps. ``nested``: whether it has lists and structs."""
    for field in schema:
        if not _is_known(field.type, nested, top=True):
            raise ConfigError(
                f"{prefix}{field.name}: {what} can't be read as {field.type}",
                where=where,
                fix="Declare it as string, and cast it after it was read.",
            )


def _is_known(kind: pa.DataType, nested: bool, *, top: bool) -> bool:
    if pt.is_struct(kind):
        return nested and all(_is_known(kind.field(i).type, nested, top=False) for i in range(kind.num_fields))
    if is_list(kind):
        return nested and _is_known(kind.value_type, nested, top=False)
    return (
        pt.is_boolean(kind)
        or pt.is_integer(kind)
        or pt.is_float32(kind)
        or pt.is_float64(kind)
        or (pt.is_decimal128(kind) or pt.is_decimal256(kind))
        or (pt.is_string(kind) or pt.is_large_string(kind))
        or (pt.is_timestamp(kind) or pt.is_date(kind))
        or (top and pt.is_time(kind))
    )


def is_list(kind: pa.DataType) -> bool:
    """Whether it is a list of any length."""
    return bool(pt.is_list(kind) or pt.is_large_list(kind))


def as_read(kind: pa.DataType) -> pa.DataType:
    """What Arrow's readers are asked for. Dates and times are text to them, as their own reading drops a zone that the
    column has none for; `cast_text` refuses that."""
    if pt.is_temporal(kind):
        return pa.string()
    return rebuilt(kind, lambda field: field.with_type(as_read(field.type)))


def cast_text(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """What was read as `as_read` says. Raises `BadValue` and ``ArrowInvalid`` for what changes: a time with a zone in a
    column without one, or without one in a column with one, and more digits than the column's unit has."""
    if column.type.equals(kind):
        return column
    if pt.is_time(kind):
        return _times(column, kind)
    return column.cast(kind, safe=True)


def _times(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    odd = pc.invert(pc.match_substring_regex(column, _TIME))
    if pc.any(odd).as_py():
        raise BadValue(f"{_quoted(column.filter(odd)[0].as_py())} is no time of day")
    # Arrow reads a time of day from text only with a day before it.
    return pc.binary_join_element_wise("1970-01-01T", column, "").cast(pa.timestamp(kind.unit)).cast(kind)


def _largest_exact(kind: pa.DataType) -> int:
    return 2**24 if pt.is_float32(kind) else 2**53


def large_floats(array: pa.Array) -> Any:
    """The places of ``array`` where integers have begun to have no float of their own."""
    large = pc.greater_equal(pc.abs(array), _largest_exact(array.type))
    return np.flatnonzero(pc.fill_null(large, False).to_numpy(zero_copy_only=False))


def has_large_float(column: pa.ChunkedArray) -> bool:
    """Whether there is one, at any depth."""
    return any(_any_large(chunk) for chunk in column.chunks)


def _any_large(array: pa.Array) -> bool:
    if pt.is_floating(array.type):
        most = pc.max(pc.abs(array)).as_py()
        return most is not None and most >= _largest_exact(array.type)
    if pt.is_struct(array.type) or is_list(array.type):
        return any(_any_large(child) for child in (array.flatten() if pt.is_struct(array.type) else [array.flatten()]))
    return False


def refuse_rounded(texts: Iterable[str], kind: pa.DataType, name: str) -> None:
    """Raise `BadValue` for a number of ``texts`` that is written as an integer and whose float is another one, and for
    one that is beyond all floats. A fraction takes the nearest float."""
    for text in texts:
        number = decimal.Decimal(text.strip())
        if not number.is_finite():
            continue
        nearest = float(text)
        if pt.is_float32(kind):
            with np.errstate(over="ignore"):
                nearest = float(np.float32(nearest))
        if math.isinf(nearest):
            raise BadValue(f"{_quoted(text)} in column {name!r} is too large for {kind}")
        if not {".", "e", "E"} & set(text) and decimal.Decimal(nearest) != number:
            raise BadValue(
                f"{_quoted(text)} in column {name!r} has no exact {kind}; declare it as decimal128 or string"
            )


def _quoted(text: str) -> str:
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}… ({len(text)} characters)"
