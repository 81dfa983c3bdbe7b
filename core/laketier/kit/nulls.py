"""Nulls where a schema allows none: in columns, and inside structs, lists and maps."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.spi.errors import UnstorableRows

_LISTS = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_list_view, pt.is_large_list_view)


def refuse_nulls(batch: pa.RecordBatch) -> None:
    """Raise `UnstorableRows` for a null where the batch's own schema declares a column, or a field inside one, not
    null. Fields inside of a null struct, list or map do not exist, so they can't be null."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        _check(column, field, field.name, None)


def _check(array: pa.Array, field: pa.Field, where: str, there: pa.BooleanArray | None) -> None:
    """``there``: which of the values exist, None for all."""
    if not field.nullable and array.null_count:
        nulls = array.null_count if there is None else pc.sum(pc.and_(array.is_null(), there)).as_py()
        if nulls:
            raise UnstorableRows(
                f"column {where!r} has {nulls} nulls",
                why="the table declares it not null",
                fix="Filter or fill them in the query.",
            )
    if is_strict_inside(field.type):
        for child, values, inside in _inside(array, field.type, there):
            _check(values, child, f"{where}.{child.name}", inside)


def _inside(
    array: pa.Array, kind: pa.DataType, there: pa.BooleanArray | None
) -> Iterator[tuple[pa.Field, pa.Array, pa.BooleanArray | None]]:
    """The values one level down, and which of them exist. A mask goes beside them, as Arrow can't filter each type."""
    if pt.is_struct(kind):
        there = _existing(array, there)
        for field, values in ((kind.field(i), array.field(i)) for i in range(kind.num_fields)):
            if _is_strict(field):
                yield field, values, there
    elif pt.is_map(kind):
        # Arrow has no flatten for maps: their keys and items are those of the whole buffer, of null maps too.
        start, end = (array.offsets[0].as_py(), array.offsets[-1].as_py()) if len(array) else (0, 0)
        there = _existing(array, there)
        inside = None if there is None else there.take(_parents(array))
        yield kind.key_field, array.keys.slice(start, end - start), inside
        yield kind.item_field, array.items.slice(start, end - start), inside
    else:
        yield kind.value_field, array.flatten(), None if there is None else there.take(pc.list_parent_indices(array))


def _existing(array: pa.Array, there: pa.BooleanArray | None) -> pa.BooleanArray | None:
    """Which values exist and are not null, None for all."""
    if not array.null_count:
        return there
    return array.is_valid() if there is None else pc.and_(there, array.is_valid())


def _parents(maps: pa.MapArray) -> pa.Array:
    """Which map each entry is of, as `pyarrow.compute.list_parent_indices` tells of lists."""
    return pc.list_parent_indices(pa.ListArray.from_arrays(maps.offsets, pa.nulls(len(maps.keys), pa.int8())))


def _is_strict(field: pa.Field) -> bool:
    return not field.nullable or is_strict_inside(field.type)


def is_strict_inside(kind: pa.DataType) -> bool:
    """Whether a field inside is not null, at any level: nothing else needs a look at the values."""
    if not pt.is_nested(kind):
        return False
    if pt.is_struct(kind):
        return any(_is_strict(kind.field(i)) for i in range(kind.num_fields))
    if pt.is_map(kind):
        # Keys are never null in Arrow, but there may be structs among them.
        return is_strict_inside(kind.key_type) or _is_strict(kind.item_field)
    return any(is_kind(kind) for is_kind in _LISTS) and _is_strict(kind.value_field)
