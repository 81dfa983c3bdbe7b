"""A null is refused where the schema allows none, at every level, and only where its parent is there."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from laketier.kit import conform
from laketier.kit.nulls import refuse_nulls
from laketier.spi import IncompatibleData

STRICT = pa.struct([pa.field("a", pa.int32(), nullable=False), ("b", pa.int32())])
ITEM = pa.field("item", pa.int32(), nullable=False)
DEEP = pa.struct([("l", pa.list_(STRICT))])
CASES: dict[str, tuple[pa.DataType, list[Any], Any, str]] = {
    "struct": (STRICT, [None, {"a": 1, "b": None}], {"a": None, "b": 1}, "c.a"),
    "list": (pa.list_(ITEM), [None, [], [1, 2]], [1, None], "c.item"),
    "large list": (pa.large_list(ITEM), [None, [], [1, 2]], [1, None], "c.item"),
    "list view": (pa.list_view(ITEM), [None, [], [1, 2]], [1, None], "c.item"),
    "fixed-size list": (pa.list_(ITEM, 2), [None, [1, 2]], [1, None], "c.item"),
    "list of structs": (pa.list_(STRICT), [None, [None, {"a": 1}]], [{"a": None}], "c.item.a"),
    "map": (pa.map_(pa.string(), ITEM), [None, [], [("k", 1)]], [("k", None)], "c.item"),
    "map of keys": (pa.map_(STRICT, pa.int8()), [None, [({"a": 1}, None)]], [({"a": None}, 1)], "c.key.a"),
    "deep": (DEEP, [None, {"l": None}, {"l": [None]}], {"l": [{"a": 1}, {"a": None}]}, "c.l.item.a"),
}


def batch_of(values: list[Any], kind: pa.DataType) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, kind)], schema=pa.schema([("c", kind)]))


@pytest.mark.parametrize("name", CASES)
def test_a_null_parent_is_fine_and_a_null_inside_is_not(name: str) -> None:
    kind, good, bad, where = CASES[name]
    fine = batch_of(good, kind)
    assert conform(fine, fine.schema).column("c").to_pylist() == fine.column("c").to_pylist()
    mixed = batch_of([*good, bad, *good], kind)
    with pytest.raises(IncompatibleData, match=f"'{where}' has 1 nulls, because the table declares it not null"):
        conform(mixed, mixed.schema)


@pytest.mark.parametrize("name", CASES)
def test_only_the_rows_of_a_slice_count(name: str) -> None:
    kind, good, bad, where = CASES[name]
    batch = batch_of([bad, *good, bad], kind)
    inner = batch.slice(1, len(good))
    assert conform(inner, inner.schema).num_rows == len(good)
    with pytest.raises(IncompatibleData, match=f"'{where}' has 1 nulls"):
        conform(batch.slice(1), batch.schema)


@pytest.mark.parametrize("kind", [pa.list_(ITEM), pa.map_(pa.string(), ITEM)], ids=str)
def test_what_lies_in_the_buffers_below_a_null_does_not_count(kind: pa.DataType) -> None:
    offsets, mask, values = pa.array([0, 1, 2], pa.int32()), pa.array([False, True]), pa.array([1, None], pa.int32())
    if pa.types.is_map(kind):
        array = pa.MapArray.from_arrays(offsets, pa.array(["k", "l"]), values, kind, mask=mask)
    else:
        array = pa.ListArray.from_arrays(offsets, values, kind, mask=mask)
    batch = pa.record_batch([array], schema=pa.schema([("c", kind)]))
    assert conform(batch, batch.schema).num_rows == 2


def test_other_nested_types_are_left_alone() -> None:
    array = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([None], pa.int8()))
    batch = pa.record_batch({"c": array})
    assert conform(batch, batch.schema).num_rows == 2


def test_maps_of_any_type_may_be_null_beside_others() -> None:
    """Arrow can't drop the nulls of maps of views, and need not, where no null has entries."""
    kind = pa.map_(pa.string(), pa.field("value", pa.string_view(), nullable=False))
    for rows in ([None, [("a", "b")]], [[("a", "b")], None, []], [None]):
        array = pa.array(rows, kind)
        for start in range(len(rows)):
            refuse_nulls(pa.record_batch([array.slice(start)], schema=pa.schema([("m", kind)])))


@pytest.mark.parametrize("inner", [pa.string_view(), pa.binary_view(), pa.list_(pa.string_view())], ids=str)
def test_types_that_arrow_can_not_filter_may_lie_below_a_null(inner: pa.DataType) -> None:
    value = ["a"] if pa.types.is_list(inner) else "a"
    strict = pa.field("s", inner, nullable=False)
    kind = pa.struct([strict, pa.field("l", pa.list_(strict)), pa.field("m", pa.map_(pa.string(), strict))])
    good = {"s": value, "l": [value], "m": [("k", value)]}
    fine = pa.array([None, good, None], kind)
    refuse_nulls(pa.record_batch([fine], schema=pa.schema([("c", kind)])))
    bad: list[dict[str, Any]] = [good | {"s": None}, good | {"l": [value, None]}, good | {"m": [("k", None)]}]
    for row in bad:
        array = pa.array([None, good, row, None], kind)
        with pytest.raises(IncompatibleData, match="has 1 nulls"):
            refuse_nulls(pa.record_batch([array], schema=pa.schema([("c", kind)])))


def test_nulls_below_a_null_struct_do_not_count() -> None:
    """Also where its own fields have values: two levels of lists and maps below it."""
    item = pa.field("item", pa.int8(), nullable=False)
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), pa.array([1, None, 2], pa.int8()), pa.list_(item))
    keys, values = pa.array(["k", "l", "m"]), pa.array([1, None, 2], pa.int8())
    maps = pa.MapArray.from_arrays(pa.array([0, 2, 3], pa.int32()), keys, values, pa.map_(pa.string(), item))
    fields = [pa.field("l", lists.type), pa.field("m", maps.type)]
    for mask, refused in ((pa.array([True, False]), False), (pa.array([False, True]), True)):
        array = pa.StructArray.from_arrays([lists, maps], fields=fields, mask=mask)
        batch = pa.record_batch([array], schema=pa.schema([("c", array.type)]))
        if refused:
            with pytest.raises(IncompatibleData, match=r"'c\.l\.item' has 1 nulls"):
                refuse_nulls(batch)
        else:
            refuse_nulls(batch)
