"""Looking into types, and making them anew."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laketier.kit.nested import children, is_list, rebuilt

ITEM = pa.field("item", pa.int8(), nullable=False, metadata={"a": "b"})
NESTED = {
    "struct": (pa.struct([ITEM, pa.field("x", pa.string())]), ["item", "x"]),
    "struct without fields": (pa.struct([]), []),
    "map": (pa.map_(pa.string(), ITEM, keys_sorted=True), ["key", "value"]),
    "list": (pa.list_(ITEM), ["element"]),
    "large list": (pa.large_list(ITEM), ["element"]),
    "fixed-size list": (pa.list_(ITEM, 3), ["element"]),
    "list view": (pa.list_view(ITEM), []),
    "flat": (pa.int64(), []),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), []),
}


@pytest.mark.parametrize("kind", NESTED)
def test_names_are_those_of_paths(kind: str) -> None:
    made, names = NESTED[kind]
    assert [name for name, _ in children(made)] == names
    assert is_list(made) == ("list" in kind and "view" not in kind)


@pytest.mark.parametrize("kind", NESTED)
def test_what_is_not_changed_is_as_it_was(kind: str) -> None:
    made, _ = NESTED[kind]
    same = rebuilt(made, lambda field: field)
    assert pa.schema([("c", same)]).equals(pa.schema([("c", made)]), check_metadata=True)


def test_all_levels_and_kinds() -> None:
    def wide(field: pa.Field) -> pa.Field:
        kind = pa.int64() if field.type == pa.int8() else rebuilt(field.type, wide)
        return pa.field(field.name, kind)

    deep = pa.struct([pa.field("m", pa.map_(pa.int8(), pa.list_(pa.large_list(ITEM), 2), keys_sorted=True))])
    free = pa.field("item", pa.int64())
    inner = pa.list_(pa.field("item", pa.large_list(free)), 2)
    assert rebuilt(deep, wide) == pa.struct([pa.field("m", pa.map_(pa.int64(), inner, keys_sorted=True))])


def test_plain_names() -> None:
    def fields(kind: pa.DataType) -> list[str]:
        return [field.name for _, field in children(rebuilt(kind, lambda field: field, plain_names=True))]

    assert fields(pa.list_(ITEM)) == ["element"]
    assert fields(pa.map_(pa.field("k", pa.string(), nullable=False), ITEM)) == ["key", "value"]
    assert fields(pa.struct([ITEM])) == ["item"]
