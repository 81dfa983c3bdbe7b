"""Each pair of types: which ones a file may have where the table has another."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from laketier_iceberg.promotion import promoted

TABLE = [
    *(pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(12, 2), pa.date32()),
    *(pa.time64("us"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.string(), pa.binary(), pa.binary(2)),
]
FILES = [
    *TABLE,
    *(pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16()),
    *(pa.decimal128(9, 2), pa.decimal128(13, 2), pa.decimal128(12, 3), pa.decimal256(12, 2), pa.date64()),
    *(pa.time32("ms"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.large_string(), pa.string_view()),
    *(pa.large_binary(), pa.binary_view()),
]
SMALL = {"int8", "int16", "uint8", "uint16"}
TEXTS = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}
MOMENTS = {"timestamp[us]", "timestamp[us, tz=UTC]", "timestamp[ns]", "timestamp[ns, tz=UTC]"}
FROM = {
    "int32": SMALL,
    "int64": {*SMALL, "int32", "uint32"},
    "float": {"halffloat"},
    "double": {"halffloat", "float"},
    "decimal128(12, 2)": {"decimal128(9, 2)", "decimal256(12, 2)"},
    "date32[day]": {"date64[ms]"},
    "time64[us]": {"time32[ms]"},
    "timestamp[us]": {*MOMENTS, "date32[day]", "date64[ms]"},
    "timestamp[us, tz=UTC]": MOMENTS,
    "string": TEXTS,
    "binary": TEXTS,
}
"""The types of Iceberg's promotions, and other spellings of one type."""


@pytest.mark.parametrize("target", TABLE, ids=str)
def test_promotions_are_those_of_the_specification_and_other_spellings(target: pa.DataType) -> None:
    found = {str(source) for source in FILES if promoted(pa.nulls(1, source), target) is not None}
    assert found == FROM.get(str(target), set()) | {str(target)}
    for source in FILES:
        array = promoted(pa.nulls(1, source), target)
        assert array is None or array.type == target


def test_values_stay_what_they_are() -> None:
    for source, target in itertools.product(FILES, TABLE):
        if pa.types.is_integer(source) and pa.types.is_integer(target) and source.bit_width < target.bit_width:
            found = promoted(pa.array([7, None], source), target)
            assert found is not None
            assert found.to_pylist() == [7, None]


def test_nanoseconds_that_microseconds_do_not_hold_are_an_error() -> None:
    with pytest.raises(pa.ArrowInvalid, match="lose data"):
        promoted(pa.array([1], pa.timestamp("ns")), pa.timestamp("us"))
