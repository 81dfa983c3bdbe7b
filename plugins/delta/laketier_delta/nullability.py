"""Not-null fields inside structs, lists and maps.

A null struct has nothing where its not-null fields would be, which Delta allows and Parquet's writer in pyarrow does
not. So files declare everything inside a column nullable, and what the table declares is checked here.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.spi import IncompatibleData


def relaxed(schema: pa.Schema) -> pa.Schema:
    """``schema`` with everything inside its columns nullable; ``schema`` itself where it is so already."""
    result = pa.schema([field.with_type(_relaxed(field.type)) for field in schema])
    return schema if result.equals(schema) else result


def refuse_nulls_inside(batch: pa.RecordBatch) -> None:
    """Raise `IncompatibleData` for a null inside a column where its type allows none and its parent is there."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        _check(column, field.type, field.name)


def declared(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """``array`` as ``kind``, which may declare more not null inside than the type that was read."""
    if array.type.equals(kind):
        return array
    if not _relaxed(array.type).equals(_relaxed(kind)):
        return array.cast(kind)
    # Arrow's cast refuses a null struct whose not-null fields have nothing. Nullability is not in the buffers, so the
    # same bytes read under the other schema are the answer.
    message = pa.RecordBatch.from_arrays([array], ["c"]).serialize()
    return pa.ipc.read_record_batch(message, pa.schema([("c", kind)])).column(0)


def _relaxed(kind: pa.DataType) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct([_nullable(kind.field(i)) for i in range(kind.num_fields)])
    if pt.is_list(kind):
        return pa.list_(_nullable(kind.value_field))
    if pt.is_map(kind):
        return pa.map_(kind.key_field.with_type(_relaxed(kind.key_type)), _nullable(kind.item_field))
    return kind


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_type(_relaxed(field.type)).with_nullable(True)


def _check(array: pa.Array, kind: pa.DataType, where: str) -> None:
    if pt.is_struct(kind):
        present = array.filter(pc.is_valid(array)) if array.null_count else array
        for i, child in enumerate(present.flatten()):
            _check_child(child, kind.field(i), where)
    elif pt.is_list(kind):
        _check_child(array.flatten(), kind.value_field, where)
    elif pt.is_map(kind):
        entries = array.filter(pc.is_valid(array)) if array.null_count else array
        start, end = (entries.offsets[0].as_py(), entries.offsets[-1].as_py()) if len(entries) else (0, 0)
        _check_child(entries.items.slice(start, end - start), kind.item_field, where)


def _check_child(array: pa.Array, field: pa.Field, where: str) -> None:
    here = f"{where}.{field.name}"
    if not field.nullable and array.null_count:
        raise IncompatibleData(
            f"{here!r} has {array.null_count} nulls",
            why="the table declares it not null",
            fix="Filter or fill them in the query.",
        )
    _check(array, field.type, here)
