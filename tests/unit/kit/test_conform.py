"""A batch fits a table without loss, or not at all."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from laketier.kit import conform
from laketier.spi import IncompatibleData

US, NS = pa.timestamp("us"), pa.timestamp("ns")


def fit(array: pa.Array, target: pa.DataType) -> pa.Array:
    schema = pa.schema([("a", target)])
    result = conform(pa.record_batch({"a": array}), schema)
    assert result.schema.equals(schema)
    return result.column(0)


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array([1, None], pa.int64()), pa.int8()),
        (pa.array([1], pa.uint64()), pa.int64()),
        (pa.array([0.5, None], pa.float32()), pa.float64()),
        (pa.array([Decimal("1.20")]), pa.decimal128(10, 1)),
        (pa.array(["x"], pa.large_string()), pa.string()),
        (pa.array(["x"], pa.string_view()), pa.string()),
        (pa.array(["x", None]).dictionary_encode(), pa.string()),
        (pa.array([b"abc"], pa.binary(3)), pa.binary()),
        (pa.array([1000], NS), US),
        (pa.array([1], pa.timestamp("us", "UTC")), pa.timestamp("us", "Europe/Berlin")),
        (pa.array([date(2026, 11, 21)], pa.date64()), pa.date32()),
        (pa.array([None, None], pa.null()), pa.int32()),
        (pa.array([[1, None]], pa.list_(pa.int64())), pa.list_(pa.int32())),
        (pa.array([[1, 2]], pa.list_(pa.int32())), pa.list_(pa.int32(), 2)),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), pa.map_(pa.string(), pa.int32())),
        (
            pa.array([{"a": 1, "b": "x"}]),
            pa.struct([pa.field("b", pa.large_string()), pa.field("a", pa.int32())]),
        ),
    ],
    ids=str,
)
def test_the_same_values_in_another_form(array: pa.Array, target: pa.DataType) -> None:
    assert fit(array, target).to_pylist() == array.to_pylist()


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array([300]), pa.int8()),
        (pa.array([2**63], pa.uint64()), pa.int64()),
        (pa.array([0.1]), pa.float32()),
        (pa.array([1e300]), pa.float32()),
        (pa.array([0.1, 0.2]).cast(pa.float32()), pa.float16()),
        (pa.array([[0.1]]), pa.list_(pa.float32())),
        (pa.array([1]), pa.float64()),
        (pa.array([1.0]), pa.int64()),
        (pa.array(["1"]), pa.int64()),
        (pa.array([1]), pa.string()),
        (pa.array([b"\xff"]), pa.string()),
        (pa.array([b"ab"]), pa.binary(3)),
        (pa.array([True]), pa.int8()),
        (pa.array([1], NS), US),
        (pa.array([1], US), pa.timestamp("us", "UTC")),
        (pa.array([1], pa.timestamp("us", "UTC")), US),
        (pa.array([1], pa.date64()), pa.date32()),
        (pa.array([Decimal("1.23")]), pa.decimal128(10, 1)),
        (pa.array([[1, 2, 3]]), pa.list_(pa.int64(), 2)),
        (pa.array([{"a": 1}]), pa.struct([("b", pa.int64())])),
        (pa.array([{"a": 1, "b": 2}]), pa.struct([("a", pa.int64())])),
        (
            pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]),
            pa.struct([("a", pa.int64()), ("b", pa.int64())]),
        ),
        (pa.array(["x"], pa.dictionary(pa.int8(), pa.string())), pa.int64()),
    ],
    ids=str,
)
def test_what_would_change_is_refused(array: pa.Array, target: pa.DataType) -> None:
    with pytest.raises(IncompatibleData, match="'a'") as caught:
        fit(array, target)
    assert caught.value.fix


SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])


def test_columns_are_matched_by_name() -> None:
    batch = pa.record_batch({"name": ["x"], "id": [1]})
    assert conform(batch, SCHEMA).to_pydict() == {"id": [1], "name": ["x"]}


def test_a_missing_nullable_column_is_null() -> None:
    assert conform(pa.record_batch({"id": [1]}), SCHEMA).to_pydict() == {"id": [1], "name": [None]}


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (pa.record_batch({"name": ["x"]}), "'id' is missing"),
        (pa.record_batch({"id": pa.array([1, None]), "name": ["x", "y"]}), "'id' has 1 nulls"),
        (
            pa.record_batch([pa.array([1, None]), pa.array(["x", "y"])], schema=SCHEMA),
            "'id' has 1 nulls",
        ),
        (pa.record_batch({"id": [1], "nam": ["x"]}), r"\['nam'\] are not in the table"),
        (
            pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["x"]), pa.array(["y"])], ["id", "name", "name"]),
            r"\['name'\] are there twice",
        ),
    ],
)
def test_what_does_not_fit_is_named(batch: pa.RecordBatch, says: str) -> None:
    with pytest.raises(IncompatibleData, match=says):
        conform(batch, SCHEMA)


def test_an_empty_batch() -> None:
    assert conform(pa.RecordBatch.from_pylist([], SCHEMA), SCHEMA).num_rows == 0


def test_metadata_is_the_tables() -> None:
    schema = SCHEMA.with_metadata({"k": "v"})
    batch = pa.record_batch([pa.array([1]), pa.array(["x"])], schema=SCHEMA)
    assert conform(batch, schema).schema.metadata == {b"k": b"v"}
