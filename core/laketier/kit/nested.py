"""Types inside of types: one way to look into structs, lists and maps of Arrow, and one to make them anew."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt


def is_list(kind: pa.DataType) -> bool:
    """Whether it is a list: of 32 or 64 bits, or of a fixed size. Views of lists are not."""
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def children(kind: pa.DataType) -> list[tuple[str, pa.Field]]:
    """The fields one level inside of a struct, a map or a list, with the names that paths have for them: a struct's
    field by its own name, ``key`` and ``value`` of a map, ``element`` of a list, whatever Arrow calls them. Nothing for
    any other type."""
    if pt.is_struct(kind):
        return [(kind.field(i).name, kind.field(i)) for i in range(kind.num_fields)]
    if pt.is_map(kind):
        return [("key", kind.key_field), ("value", kind.item_field)]
    return [("element", kind.value_field)] if is_list(kind) else []


def rebuilt(kind: pa.DataType, change: Callable[[pa.Field], pa.Field], *, plain_names: bool = False) -> pa.DataType:
    """``kind`` with each field one level inside made anew by ``change``; a type that has none as it is. For all levels,
    ``change`` calls this again.

    Kinds and sizes of lists stay, and the keys of a map stay sorted, and not null. ``plain_names``: fields of lists and
    maps get the names that `children` gives.
    """
    made = [change(field).with_name(name) if plain_names else change(field) for name, field in children(kind)]
    if pt.is_struct(kind):
        return pa.struct(made)
    if pt.is_map(kind):
        return pa.map_(made[0].with_nullable(False), made[1], keys_sorted=kind.keys_sorted)
    if pt.is_fixed_size_list(kind):
        return pa.list_(made[0], kind.list_size)
    if pt.is_list(kind):
        return pa.list_(made[0])
    return pa.large_list(made[0]) if pt.is_large_list(kind) else kind
