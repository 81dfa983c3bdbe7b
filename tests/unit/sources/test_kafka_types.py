"""Arrow types from text."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.sources.kafka.types import parse_schema, parse_type
from laketier.spi import ConfigError

LEAVES = st.one_of(
    st.sampled_from(
        [
            *(pa.int8(), pa.uint64(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string()),
            *(pa.large_string(), pa.binary(), pa.binary(16), pa.date32(), pa.time32("s"), pa.time64("us")),
            *(pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Berlin"), pa.duration("s")),
        ]
    ),
    st.builds(pa.decimal128, st.integers(5, 38), st.integers(0, 5)),
    st.builds(pa.decimal256, st.integers(39, 76), st.integers(0, 5)),
)


def nested(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.lists(st.tuples(st.sampled_from("abc"), kinds), min_size=1, max_size=3, unique_by=lambda pair: pair[0])
    return st.one_of(
        kinds.map(pa.list_), kinds.map(pa.large_list), fields.map(pa.struct), st.builds(pa.map_, LEAVES, kinds)
    )


@given(st.recursive(LEAVES, nested, max_leaves=6))
def test_what_arrow_prints_is_read(kind: pa.DataType) -> None:
    assert parse_type(str(kind)) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("timestamp[us, UTC]", pa.timestamp("us", "UTC")),
        ("list<int64>", pa.list_(pa.int64())),
        (
            "list<struct<x: int64, y: list<string>>>",
            pa.list_(pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])),
        ),
        ("decimal128(10,2)", pa.decimal128(10, 2)),
        (" float64 ", pa.float64()),
    ],
)
def test_short_forms(text: str, kind: pa.DataType) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        *("", "integer", "list<>", "list<int64", "list<int64, int64>", "list", "struct", "struct<int64>", "map<int64>"),
        *("decimal128(99, 2)", "decimal128(x, 2)", "timestamp[xs]", "timestamp[xs, UTC]"),
    ],
)
def test_what_is_none_is_refused_with_its_column(text: str) -> None:
    with pytest.raises(ConfigError, match=r"t: columns\.id = .* is not an Arrow type, because .*Write it as Arrow"):
        parse_schema({"id": text}, "t")
