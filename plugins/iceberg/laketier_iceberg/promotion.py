"""Types that a column had before: which ones read as its type now. Executor: pyarrow only."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt


def promoted(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """``array`` as ``kind``, where Iceberg's promotions or another spelling of the same type lead there; else None.

    A cast alone would do too much: text to numbers, numbers to text. Raises `pyarrow.ArrowInvalid` for a value that
    does not fit: nanoseconds where the table has microseconds. The promotions themselves can't meet one.
    """
    source = array.type
    if source.equals(kind):
        return array
    if not _leads(source, kind):
        return None
    return array.cast(kind)


def _leads(source: pa.DataType, target: pa.DataType) -> bool:
    """Of two types that are not the same."""
    if pt.is_signed_integer(target):
        return pt.is_integer(source) and source.bit_width < target.bit_width
    if pt.is_floating(target):
        return pt.is_floating(source) and source.bit_width <= target.bit_width
    if pt.is_decimal(target):
        return pt.is_decimal(source) and source.scale == target.scale and source.precision <= target.precision
    if pt.is_timestamp(target):
        return pt.is_timestamp(source) or (pt.is_date(source) and target.tz is None)
    if pt.is_date(target):
        return pt.is_date(source)
    if pt.is_time(target):
        return pt.is_time(source)
    if _is_text(target):
        return _is_text(source)
    return False


def _is_text(kind: pa.DataType) -> bool:
    """Strings and binaries: files of old writers do not say which."""
    return any(
        test(kind)
        for test in (
            pt.is_string, pt.is_large_string, pt.is_string_view, pt.is_binary, pt.is_large_binary, pt.is_binary_view,
        )
    )  # fmt: skip
