"""Nested types: one way to look into structs, lists and maps of Arrow, and one to rebuild them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list: of 32 or 64 bits, or of a fixed size. Views of lists do not count."""
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def children(kind: pa.DataType) -> list[tuple[str, pa.Field]]:
    """List the fields one level inside of a struct, a map or a list, with their names in paths: a struct's field has
    its own name, a map's fields are ``key`` and ``value``, a list's field is ``element``, also if Arrow has other
    names. Empty for all other types."""
    if pt.is_struct(kind):
        return [(kind.field(i).name, kind.field(i)) for i in range(kind.num_fields)]
    if pt.is_map(kind):
        return [("key", kind.key_field), ("value", kind.item_field)]
    return [("element", kind.value_field)] if is_list(kind) else []


def rebuilt(kind: pa.DataType, change: Callable[[pa.Field], pa.Field], *, plain_names: bool = False) -> pa.DataType:
    """Rebuild a type with ``change`` applied to each field one level inside. A type without fields stays as it is.
    For all levels, ``change`` calls this function again. Kinds and sizes of lists stay. The keys of a map stay
    sorted and not null. With ``plain_names``, fields of lists and maps get the names that `children` gives."""
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
