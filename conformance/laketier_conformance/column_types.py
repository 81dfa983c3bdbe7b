"""Types of columns that hold the same values: a format may keep a column as another one than it was asked for."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt

_UNITS = ("s", "ms", "us", "ns")


def alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether ``one`` holds all values of ``other`` in the same meaning: a finer unit of time, wider offsets, another
    name of a list's items. An integer of another width is another type."""
    if one.equals(other):
        return True
    kinds: tuple[Callable[[pa.DataType], bool], ...]
    for kinds in (
        (pt.is_string, pt.is_large_string, pt.is_string_view),
        (pt.is_binary, pt.is_large_binary, pt.is_binary_view),
        (pt.is_date32, pt.is_date64),
    ):
        if any(is_kind(one) for is_kind in kinds) and any(is_kind(other) for is_kind in kinds):
            return True
    if pt.is_decimal(one) and pt.is_decimal(other):
        return bool((one.precision, one.scale) == (other.precision, other.scale))
    if pt.is_time(one) and pt.is_time(other):
        return _UNITS.index(one.unit) >= _UNITS.index(other.unit)
    if pt.is_timestamp(one) and pt.is_timestamp(other):
        # Formats keep moments in UTC; the zone in which they are shown is the reader's.
        return _UNITS.index(one.unit) >= _UNITS.index(other.unit) and (one.tz is None) == (other.tz is None)
    if pt.is_fixed_size_list(one) and pt.is_fixed_size_list(other):
        return one.list_size == other.list_size and alike(one.value_type, other.value_type)
    if (pt.is_list(one) or pt.is_large_list(one)) and (pt.is_list(other) or pt.is_large_list(other)):
        return alike(one.value_type, other.value_type)
    if pt.is_map(one) and pt.is_map(other):
        return alike(one.key_type, other.key_type) and alike(one.item_type, other.item_type)
    if pt.is_struct(one) and pt.is_struct(other):
        pairs = zip(one.fields, other.fields, strict=False)
        return one.names == other.names and all(alike(a.type, b.type) for a, b in pairs)
    return False
