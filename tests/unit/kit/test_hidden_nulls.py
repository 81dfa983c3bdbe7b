"""Nulls below nulls: rows stay as they are, and Parquet's writer takes them."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier.kit import conform

STRICT = pa.struct([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())])
DEEP = pa.struct([pa.field("s", STRICT, nullable=False), pa.field("t", pa.string(), nullable=False)])
LISTED = pa.struct([pa.field("l", pa.list_(pa.field("x", pa.bool_(), nullable=False)), nullable=False)])
CASES = {
    "struct": (STRICT, {"a": 1, "b": None}),
    "struct in a struct": (DEEP, {"s": {"a": 1, "b": "x"}, "t": "y"}),
    "list in a struct": (LISTED, {"l": [True, False]}),
    "list of structs": (pa.list_(STRICT), [{"a": 1, "b": "x"}]),
    "map in a struct": (
        pa.struct([pa.field("m", pa.map_(pa.string(), pa.field("v", STRICT, nullable=False)), nullable=False)]),
        {"m": [("k", {"a": 1, "b": "x"})]},
    ),
}


@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize("name", CASES)
def test_rows_are_the_same_and_can_be_written(name: str, at: int) -> None:
    kind, value = CASES[name]
    one = pa.array([value], kind)
    column = pa.concat_arrays([one, pa.nulls(2, kind), one, pa.nulls(9, kind), one])[at:]
    schema = pa.schema([("c", kind)])
    made = conform(pa.RecordBatch.from_arrays([column], schema=schema), schema)
    made.validate(full=True)
    assert made.column(0).to_pylist() == column.to_pylist()
    file = io.BytesIO()
    pq.write_table(pa.Table.from_batches([made]), file)
    assert pq.read_table(file)["c"].to_pylist() == column.to_pylist()


def test_vectors_below_a_null() -> None:
    """No file: pyarrow writes these, and can't read them."""
    vectors = pa.list_(pa.field("item", pa.float32(), nullable=False), 2)
    kind = pa.struct([pa.field("v", vectors, nullable=False)])
    column = pa.concat_arrays([pa.nulls(2, kind), pa.array([{"v": [1.0, 2.0]}], kind)])
    schema = pa.schema([("c", kind)])
    made = conform(pa.RecordBatch.from_arrays([column], schema=schema), schema).column(0)
    made.validate(full=True)
    assert made.field(0).null_count == made.field(0).values.null_count == 0
    assert made.to_pylist() == column.to_pylist()


def test_a_dictionary_below_a_null() -> None:
    """Where all is null it has no values, and what lies below nulls is no index of one."""
    kind = pa.struct([pa.field("d", pa.dictionary(pa.int8(), pa.string()), nullable=False)])
    schema = pa.schema([("c", kind)])
    for column in (pa.nulls(2, kind), pa.concat_arrays([pa.nulls(2, kind), pa.array([{"d": "x"}], kind)])):
        made = conform(pa.RecordBatch.from_arrays([column], schema=schema), schema).column(0)
        made.validate(full=True)
        assert made.field(0).null_count == 0
        assert made.to_pylist() == column.to_pylist()


def test_structs_that_are_null_in_a_list() -> None:
    values = pa.concat_arrays([pa.nulls(2, STRICT), pa.array([{"a": 1, "b": None}], STRICT)])
    column = pa.ListArray.from_arrays([0, 1, 1, 3], values, type=pa.list_(STRICT))
    schema = pa.schema([("c", column.type)])
    made = conform(pa.RecordBatch.from_arrays([column[1:]], schema=schema), schema)
    file = io.BytesIO()
    pq.write_table(pa.Table.from_batches([made]), file)
    assert pq.read_table(file)["c"].to_pylist() == [[], [None, {"a": 1, "b": None}]]


def test_a_batch_without_any_is_left_as_it_is() -> None:
    schema = pa.schema([("c", STRICT)])
    batch = pa.RecordBatch.from_pydict({"c": [None, {"a": 1, "b": "x"}]}, schema=schema)
    made = conform(batch, schema).column(0)
    assert [buffer and buffer.address for buffer in made.buffers()] == [
        buffer and buffer.address for buffer in batch.column(0).buffers()
    ]
