"""Nulls where a schema allows none: in columns, and inside structs, lists and maps."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from laketier.spi.errors import IncompatibleData

_LISTS = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_list_view, pt.is_large_list_view)


def refuse_nulls(batch: pa.RecordBatch) -> None:
    """Raise `IncompatibleData` for a null where the batch's own schema declares a column, or a field inside one, not
    null. Fields inside of a null struct, list or map do not exist, so they can't be null."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        _check(column, field, field.name)


def _check(array: pa.Array, field: pa.Field, where: str) -> None:
    if not field.nullable and array.null_count:
        raise IncompatibleData(
            f"column {where!r} has {array.null_count} nulls",
            why="the table declares it not null",
            fix="Filter or fill them in the query.",
        )
    if _is_strict_inside(field.type):
        for child, values in _inside(array, field.type):
            _check(values, child, f"{where}.{child.name}")


def _inside(array: pa.Array, kind: pa.DataType) -> Iterator[tuple[pa.Field, pa.Array]]:
    """The values one level down whose parents are there."""
    if pt.is_struct(kind):
        there = array.is_valid() if array.null_count else None
        for field, values in ((kind.field(i), array.field(i)) for i in range(kind.num_fields)):
            if _is_strict(field):
                yield field, values if there is None else values.filter(there)
    elif pt.is_map(kind):
        # Arrow has no flatten for maps, and their keys and items are those of the whole buffer.
        maps = array.drop_null() if _hides_values(array) else array
        start, end = (maps.offsets[0].as_py(), maps.offsets[-1].as_py()) if len(maps) else (0, 0)
        yield kind.key_field, maps.keys.slice(start, end - start)
        yield kind.item_field, maps.items.slice(start, end - start)
    else:
        yield kind.value_field, array.flatten()


def _hides_values(maps: pa.MapArray) -> bool:
    """Whether a null has entries. Seldom; and Arrow can't drop the nulls of maps with every type inside."""
    if not maps.null_count:
        return False
    ends = maps.offsets
    sizes = pc.subtract(ends.slice(1), ends.slice(0, len(maps)))
    return bool(pc.any(pc.and_(maps.is_null(), pc.greater(sizes, 0))).as_py())


def _is_strict(field: pa.Field) -> bool:
    return not field.nullable or _is_strict_inside(field.type)


def _is_strict_inside(kind: pa.DataType) -> bool:
    """Whether a field inside is not null, at any level: nothing else needs a look at the values."""
    if not pt.is_nested(kind):
        return False
    if pt.is_struct(kind):
        return any(_is_strict(kind.field(i)) for i in range(kind.num_fields))
    if pt.is_map(kind):
        # Keys are never null in Arrow, but there may be structs among them.
        return _is_strict_inside(kind.key_type) or _is_strict(kind.item_field)
    return any(is_kind(kind) for is_kind in _LISTS) and _is_strict(kind.value_field)
