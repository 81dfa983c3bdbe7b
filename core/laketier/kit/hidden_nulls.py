"""Nulls that no reader sees: those of a field below a null struct, list or map.

Arrow lets them be there also where the field is declared not null, `pyarrow.nulls` makes them, and so do engines.
Parquet's writer refuses them. So the bits that call them null are left out. What lies there then is any value, and
still below a null.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit.nested import children
from laketier.kit.nulls import is_strict_inside


def without_hidden_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, in which no field that is not null has a null. For a batch that `refuse_nulls` passed."""
    columns = [_shown(column) for column in batch.columns]
    if all(made is column for made, column in zip(columns, batch.columns, strict=True)):
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _shown(array: Any) -> Any:
    """``array`` itself where it has none."""
    kind = array.type
    if not is_strict_inside(kind) or not children(kind):
        return array
    before = _children(array)
    after = [_child(child, field) for child, (_, field) in zip(before, children(kind), strict=True)]
    if all(made is child for made, child in zip(after, before, strict=True)):
        return array
    return _made(array, after, array.is_null() if array.null_count else None, array.buffers()[0])


def _child(array: Any, field: pa.Field) -> Any:
    shown = _shown(array)
    if field.nullable or not shown.null_count:
        return shown
    if children(shown.type):
        return _made(shown, _children(shown), None, None)
    if pt.is_dictionary(shown.type):
        values = shown.dictionary if len(shown.dictionary) else _child(pa.nulls(1, shown.type.value_type), field)
        return pa.DictionaryArray.from_arrays(shown.indices.fill_null(0), values, ordered=shown.type.ordered)
    return pa.Array.from_buffers(shown.type, len(shown), [None, *shown.buffers()[1:]], 0, shown.offset)


def _children(array: Any) -> list[Any]:
    """Of a struct those beside its own slice of rows; of lists and maps all, as their offsets tell which count."""
    if pt.is_struct(array.type):
        return [array.field(i) for i in range(array.type.num_fields)]
    return [array.keys, array.items] if pt.is_map(array.type) else [array.values]


def _made(array: Any, inner: list[Any], mask: Any, validity: Any) -> Any:
    """An array of the type of ``array``, with other children, and with these nulls."""
    kind = array.type
    if pt.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(inner, fields=fields, mask=mask)
    if pt.is_map(kind):
        inner = [pa.StructArray.from_arrays(inner, fields=[kind.key_field, kind.item_field])]
    own = [] if pt.is_fixed_size_list(kind) else array.buffers()[1:2]
    nulls = 0 if validity is None else array.null_count
    return pa.Array.from_buffers(kind, len(array), [validity, *own], nulls, array.offset, inner)
