"""How large an Arrow array becomes once nothing in it stands for more than one value.

A dictionary, a view or a run may stand for any number of long values, and an array of nulls for any number of them
without a byte. All else is as large as its buffers, which were looked at when they came.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_PLACE = 8
"""Bytes, for the offset of a value or a null. No plain value of a dictionary takes so many more that it matters."""
_MANY_RUNS = 1 << 24
_PLAIN = frozenset(
    kind.id
    for kind in (
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(1), pa.date32(), pa.date64(), pa.timestamp("us")),
        *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
    )
)
"""What most columns are of, so that they are known at once."""
Sizes = float | npt.NDArray[np.float64]
"""Of each value, or of any where all have the same. As floats, which no forged number overflows."""


def expanded_bytes(array: pa.Array) -> float:
    """So many bytes the values of ``array`` take that may stand for more than one; 0 where none does."""
    if not _shares(array.type):
        return 0
    sizes = _sizes(array)
    return sizes * len(array) if isinstance(sizes, float) else float(sizes.sum())


def largest_value(array: pa.Array) -> int:
    """How many bytes the largest value of ``array`` takes, by the same rule."""
    sizes = _sizes(array)
    return int(sizes if isinstance(sizes, float) else sizes.max(initial=0))


def _shares(kind: pa.DataType) -> bool:
    """Whether there is anything in it that takes fewer bytes than its values do."""
    if kind.id in _PLAIN:
        return False
    if isinstance(kind, pa.BaseExtensionType):
        return _shares(kind.storage_type)
    if pt.is_struct(kind) or pt.is_list(kind) or pt.is_large_list(kind) or pt.is_map(kind):
        return not kind.num_fields or any(_shares(kind.field(at).type) for at in range(kind.num_fields))
    if pt.is_fixed_size_list(kind):
        return kind.list_size == 0 or _shares(kind.value_type)
    if pt.is_fixed_size_binary(kind):
        return bool(kind.byte_width == 0)
    return bool(
        pt.is_dictionary(kind)
        or pt.is_null(kind)
        or pt.is_string_view(kind)
        or pt.is_binary_view(kind)
        or _is_list_view(kind)
        or pt.is_run_end_encoded(kind)
    )


def _is_list_view(kind: pa.DataType) -> bool:
    return bool(pt.is_list_view(kind) or pt.is_large_list_view(kind))


def _sizes(array: pa.Array) -> Sizes:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _sizes(array.storage)
    if not len(array):
        return 0.0
    if pt.is_dictionary(kind):
        return _taken(_sizes(array.dictionary), array.indices)
    if pt.is_run_end_encoded(kind):
        return _of_runs(array)
    if pt.is_struct(kind):
        return sum((_sizes(array.field(at)) for at in range(kind.num_fields)), float(_PLACE))
    if pt.is_map(kind):
        return _of_lists(array, [array.keys, array.items])
    if pt.is_list(kind) or pt.is_large_list(kind):
        return _of_lists(array, [array.values])
    if _is_list_view(kind):
        starts, lengths = (pc.fill_null(part, 0).to_numpy() for part in (array.offsets, array.sizes))
        return _between([array.values], starts, starts + lengths)
    if pt.is_fixed_size_list(kind):
        return _of_fixed_lists(array)
    return _of_plain(array)


def _of_plain(array: pa.Array) -> Sizes:
    kind = array.type
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], np.int32)  # a view of 16 bytes begins with its length
        lengths = views.reshape(-1, 4)[array.offset : array.offset + len(array), 0].astype(np.float64)
        # A null's view is whatever its writer left there.
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0.0) + _PLACE
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_binary(kind) or pt.is_large_binary(kind):
        lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy()
        return lengths.astype(np.float64) + _PLACE
    return float(_PLACE + (kind.byte_width if pt.is_fixed_size_binary(kind) else 0))


def _taken(sizes: Sizes, indices: pa.Array) -> Sizes:
    if isinstance(sizes, float):
        return sizes
    found: Sizes = sizes[pc.fill_null(indices, 0).to_numpy()] if len(sizes) else 0.0
    return found


def _of_lists(array: pa.Array, items: list[pa.Array]) -> Sizes:
    offsets = array.offsets.to_numpy().astype(np.int64)
    return _between(items, offsets[:-1], offsets[1:])


def _between(items: list[pa.Array], starts: npt.NDArray[Any], ends: npt.NDArray[Any]) -> Sizes:
    """Of what is from each start to its end. Only what they cover is looked at: one array has many slices."""
    first, last = int(starts.min()), int(ends.max())
    total: Sizes = float(_PLACE)
    for column in items:
        sizes = _sizes(column.slice(first, last - first))
        if isinstance(sizes, float):
            total = total + sizes * (ends - starts)
        else:
            until = np.concatenate(([0.0], np.cumsum(sizes)))
            total = total + until[ends - first] - until[starts - first]
    return total


def _of_fixed_lists(array: pa.Array) -> Sizes:
    each = array.type.list_size
    sizes = _sizes(array.values.slice(array.offset * each, len(array) * each))
    if isinstance(sizes, float):
        return _PLACE + sizes * each
    return _PLACE + sizes.reshape(len(array), each).sum(axis=1)


def _of_runs(array: pa.Array) -> Sizes:
    sizes = _sizes(array.values)
    if isinstance(sizes, float):
        return sizes
    if len(array) > _MANY_RUNS:
        return float(sizes.max())
    ends = array.run_ends.to_numpy()
    found: Sizes = sizes[np.searchsorted(ends, array.offset + np.arange(len(array)), side="right")]
    return found
