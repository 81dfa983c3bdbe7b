"""The statistics of a data file, value by value, from footers that pyarrow writes."""

from __future__ import annotations

import io
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laketier_delta.stats import FileStatistics, _json

HIGHEST = "\U0010ffff"


def of(
    *groups: list[Any], kind: pa.DataType, unbounded: tuple[str, ...] = (), indexed: int = -1, **columns: Any
) -> dict[str, Any]:
    """Of a column ``c`` of this type, a row group for each list."""
    schema = pa.schema([("c", kind)])
    file = io.BytesIO()
    with pq.ParquetWriter(file, schema) as writer:
        for group in groups:
            writer.write_table(pa.table([pa.array(group, kind)], schema=schema))
    text = FileStatistics(schema, indexed, **columns).of(pq.ParquetFile(file).metadata, unbounded)
    found: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return found


@pytest.mark.parametrize(
    ("kind", "values", "low", "high"),
    [
        (pa.int8(), [3, -2, None], -2, 3),
        (pa.bool_(), [True, False], False, True),
        (pa.float64(), [1.5, -2.5], Decimal("-2.5"), Decimal("1.5")),
        (pa.float64(), [math.inf, 1.0], Decimal("1.0"), "Infinity"),
        (pa.float32(), [-math.inf, 1.0], "-Infinity", Decimal("1.0")),
        (pa.date32(), [0, -1], "1969-12-31", "1970-01-01"),
        (pa.timestamp("us", "UTC"), [1_500, -1], "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.002Z"),
        (pa.timestamp("us"), [1_000, 2_000], "1970-01-01T00:00:00.001", "1970-01-01T00:00:00.002"),
        (pa.decimal128(5, 2), [Decimal("1.50"), Decimal("-0.25")], Decimal("-0.25"), Decimal("1.50")),
        (pa.string(), ["b", "aé"], "aé", "b"),
        (pa.string(), ["x" * 32], "x" * 32, "x" * 32),
        (pa.string(), ["x" * 33], "x" * 32, "x" * 32 + HIGHEST),
        (pa.string(), ["x" * 32 + HIGHEST + "y"], "x" * 32, "x" * 32 + HIGHEST + HIGHEST),
        (pa.string(), ["x" * 32 + HIGHEST], "x" * 32, "x" * 32 + HIGHEST),
    ],
    ids=str,
)
def test_bounds(kind: pa.DataType, values: list[Any], low: Any, high: Any) -> None:
    found = of(values, kind=kind)
    assert (found["minValues"], found["maxValues"]) == ({"c": low}, {"c": high})
    assert (found["numRecords"], found["nullCount"]) == (len(values), {"c": values.count(None)})


@pytest.mark.parametrize(
    ("kind", "values", "low", "high"),
    [
        (pa.decimal128(20, 0), [Decimal(12345678901234567890)], 12345678901234500000, 12345678901234600000),
        (pa.decimal128(20, 0), [Decimal(-12345678901234567890)], -12345678901234600000, -12345678901234500000),
        (pa.decimal128(16, 0), [Decimal("9" * 16)], int("9" * 15 + "0"), None),
        (pa.decimal128(16, 0), [Decimal("-" + "9" * 16)], None, -int("9" * 15 + "0")),
        (pa.decimal128(38, 10), [Decimal("1E-10")], Decimal("0.0000000001"), Decimal("0.0000000001")),
    ],
    ids=str,
)
def test_decimals_have_digits_that_a_double_keeps(kind: pa.DataType, values: list[Any], low: Any, high: Any) -> None:
    """A bound that rounding would bring out of the type is left out."""
    found = of(values, kind=kind)
    assert (found["minValues"].get("c"), found["maxValues"].get("c")) == (low, high)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.binary(), [b"a"]),
        (pa.int64(), [None]),
        (pa.string(), ["x" * 5000]),
        (pa.date32(), [2**30]),
        (pa.timestamp("us"), [2**62]),
    ],
    ids=["binary", "nulls", "long text", "a date after 9999", "a moment after 9999"],
)
def test_bounds_that_nobody_can_write(kind: pa.DataType, values: list[Any]) -> None:
    found = of(values, kind=kind)
    assert (found["minValues"], found["maxValues"]) == ({}, {})
    assert found["nullCount"] == {"c": values.count(None)}


def test_bounds_are_of_all_row_groups() -> None:
    found = of([3, 4], [None, None], [1, None], [2], kind=pa.int64())
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({"c": 1}, {"c": 4}, {"c": 3})
    assert found["numRecords"] == 7


@pytest.mark.parametrize("groups", [(["x" * 5000], ["b"]), (["b"], ["x" * 5000])], ids=["first", "last"])
def test_a_group_without_bounds_leaves_the_file_without(groups: tuple[list[str], ...]) -> None:
    """Parquet keeps no bounds of a text of more than 4 KiB."""
    found = of(*groups, kind=pa.string())
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {"c": 0})


def test_floats_that_held_nan_have_no_bounds() -> None:
    found = of([1.0], kind=pa.float64(), unbounded=("c",))
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {"c": 0})
    assert of([1], kind=pa.int64(), unbounded=("c",))["minValues"] == {"c": 1}


def test_no_bare_nan_gets_into_a_log() -> None:
    """It is no JSON, and readers refuse the whole table for it."""
    for number in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            _json({"minValues": {"c": number}})


DEEP = pa.struct([("a", pa.struct([("b", pa.struct([("i", pa.int64()), ("f", pa.float64())]))])), ("z", pa.int64())])
VALUE = {"a": {"b": {"i": 7, "f": 1.0}}, "z": None}


def test_fields_of_fields() -> None:
    """Whether a float within others held NaN nobody watches, so it has no bounds."""
    found = of([VALUE], kind=DEEP)
    assert found["minValues"] == found["maxValues"] == {"c": {"a": {"b": {"i": 7}}}}
    assert found["nullCount"] == {"c": {"a": {"b": {"i": 0, "f": 0}}, "z": 1}}


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.list_(DEEP)], ids=str)
def test_what_is_within_lists_has_none(kind: pa.DataType) -> None:
    found = of([[None]], kind=kind)
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({}, {}, {})


@pytest.mark.parametrize(
    ("columns", "counted"),
    [
        ({"indexed": 0}, {}),
        ({"indexed": 1}, {"c": {"a": {"b": {"i": 0}}}}),
        ({"indexed": 2}, {"c": {"a": {"b": {"i": 0, "f": 0}}}}),
        ({"columns": {"c"}}, {"c": {"a": {"b": {"i": 0, "f": 0}}, "z": 1}}),
        ({"columns": {"c.a.b.f", "other"}}, {"c": {"a": {"b": {"f": 0}}}}),
        ({"columns": {"c.a"}, "indexed": 0}, {"c": {"a": {"b": {"i": 0, "f": 0}}}}),
        ({"columns": set()}, {}),
    ],
)
def test_which_columns_have_them(columns: dict[str, Any], counted: dict[str, Any]) -> None:
    assert of([VALUE], kind=DEEP, **columns)["nullCount"] == counted


def test_leaves_are_found_behind_others() -> None:
    """A list has a leaf of its own in the file."""
    schema = pa.schema([("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.int64())), ("i", pa.int64())])
    file = io.BytesIO()
    pq.write_table(pa.table([[[5]], pa.array([[("k", 6)]], schema.field("m").type), [7]], schema=schema), file)
    found = json.loads(FileStatistics(schema, 1).of(pq.ParquetFile(file).metadata, ()))
    assert (found["minValues"], found["nullCount"]) == ({"i": 7}, {"i": 0})


def test_a_file_without_statistics_of_its_own() -> None:
    schema, file = pa.schema([("c", pa.int64())]), io.BytesIO()
    pq.write_table(pa.table({"c": [1]}), file, write_statistics=False)
    found = json.loads(FileStatistics(schema, -1).of(pq.ParquetFile(file).metadata, ()))
    assert found == {"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {}}
