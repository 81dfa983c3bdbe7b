"""Arrow tables as JSON lines, and what Arrow's reader makes of them back as it was. Vectorised, at any depth.

A reader of Arrow's knows no maps and no lists of a fixed size, and takes dates, times, decimals and bytes as text. So
a map is an array of objects with ``key`` and ``value``, in its order and with keys that come twice.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.kit.nested import children, is_list
from laketier_localfile.file_formats.scalars import TEXT, is_bytes, is_number, is_text, text_of, values_of

_CONTROLS = "[\\x00-\\x1f]"


@cache
def _scalar(text: str) -> pa.Scalar:
    """Not made when this is imported: Arrow imports pandas for its first value, which takes as long as all of ours."""
    return pa.scalar(text, TEXT)


def lines(table: pa.Table) -> pa.Buffer:
    """The rows of ``table``, at most some 100 MiB, one JSON object a line; every column is in every line. Raises
    `UnstorableRows` for values that JSON can't hold."""
    batch = table.combine_chunks().to_batches()
    rows = pa.StructArray.from_arrays(batch[0].columns, names=table.schema.names)
    text = _joined(_object_parts(rows, ""), "}\n")
    start, end = (np.frombuffer(text.buffers()[1], np.int64)[[text.offset, text.offset + len(text)]]).tolist()
    return text.buffers()[2].slice(start, end - start)


def _value(array: pa.Array, where: str) -> pa.Array:
    """Each value as JSON; null is ``null``."""
    kind = array.type
    if pt.is_struct(kind):
        text = _joined(_object_parts(array, f"{where}."), "}")
    elif is_list(kind) or pt.is_map(kind):
        text = _array(array, where)
    else:
        text = text_of(array, where)
        if is_text(kind):
            text = _escaped(text)
        if not (is_number(kind) or pt.is_boolean(kind)):
            text = pc.binary_join_element_wise(_scalar('"'), text, _scalar('"'), _scalar(""))
    return pc.if_else(array.is_valid(), text, _scalar("null")) if array.null_count else text


def _object_parts(array: pa.StructArray, prefix: str) -> list[Any]:
    parts: list[Any] = []
    for index, child in enumerate(array.flatten()):
        name = array.type.field(index).name
        start = "{" if index == 0 else ","
        parts.append(pa.scalar(f"{start}{json.dumps(name, ensure_ascii=False)}:", TEXT))
        parts.append(_value(child, f"{prefix}{name}"))
    return parts


def _joined(parts: list[Any], end: str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, _scalar(end), _scalar(""))


def _array(array: pa.Array, where: str) -> pa.Array:
    lists = _entries(array) if pt.is_map(array.type) else array
    items = lists.flatten()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    texts = pa.LargeListArray.from_arrays(pa.array(offsets), _value(items, f"{where}.element"))
    return pc.binary_join_element_wise(_scalar("["), pc.binary_join(texts, _scalar(",")), _scalar("]"), _scalar(""))


def _entries(array: pa.MapArray) -> pa.Array:
    """Maps as lists of structs: Arrow flattens no maps, and what is below a null one, or outside of a slice, is not
    theirs."""
    entries = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    return pa.ListArray.from_arrays(pa.array(array.offsets.to_numpy()), entries, mask=_missing(array))


def _escaped(text: pa.Array) -> pa.Array:
    text = pc.replace_substring(text, "\\", "\\\\")
    text = pc.replace_substring(text, '"', '\\"')
    if pc.any(pc.match_substring_regex(text, _CONTROLS)).as_py():
        for code in range(32):
            text = pc.replace_substring(text, chr(code), f"\\u{code:04x}")
    return text


def as_read(kind: pa.DataType) -> pa.DataType:
    """What Arrow's reader is asked for, where a column is ``kind``."""
    if pt.is_struct(kind):
        return pa.struct([(name, as_read(child.type)) for name, child in children(kind)])
    if pt.is_map(kind):
        entry = [("key", as_read(kind.key_type)), ("value", as_read(kind.item_type))]
        return pa.list_(pa.struct(entry))
    if is_list(kind):
        return pa.list_(as_read(kind.value_type))
    if is_text(kind) or is_bytes(kind) or pt.is_temporal(kind):
        return pa.string()
    return pa.float32() if pt.is_float16(kind) else kind


def restored(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """What was read as `as_read` says, as ``kind``. ``array`` is whole, no slice."""
    if pt.is_struct(kind):
        inside = [restored(array.field(i), kind.field(i).type) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(inside, fields=list(kind), mask=_missing(array))
    if pt.is_map(kind):
        entries = array.values
        keys, items = restored(entries.field(0), kind.key_type), restored(entries.field(1), kind.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=kind, mask=_missing(array))
    if pt.is_fixed_size_list(kind):
        return _fixed(array, kind)
    if is_list(kind):
        made = pa.LargeListArray if pt.is_large_list(kind) else pa.ListArray
        return made.from_arrays(array.offsets, restored(array.values, kind.value_type), type=kind, mask=_missing(array))
    return values_of(array, kind)


def _missing(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _fixed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A null takes as much room as any other value of a list of a fixed size."""
    size, values = kind.list_size, array.values
    if array.null_count:
        there = np.asarray(array.is_valid())
        places = np.zeros((len(array), size), np.int64)
        places[there] = np.arange(len(values)).reshape(-1, size)
        values = values.take(pa.array(places.ravel())) if len(values) else pa.nulls(places.size, values.type)
    inside = restored(values, kind.value_type)
    return pa.FixedSizeListArray.from_arrays(inside, type=kind, mask=_missing(array))
