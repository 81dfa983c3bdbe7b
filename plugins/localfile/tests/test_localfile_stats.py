"""What a manifest says of a Parquet file: exact where it says something, silent where the footer is."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.kit.manifests import FileEntry
from laketier.kit.partition import partition_text
from laketier.spi import CorruptTable, Leaf, Op, UnsupportedType
from laketier_localfile.layout import attempt_of_staged
from laketier_localfile.parquet import column_stats, footer_digest, has_bounds, stats_from_text, stats_to_text
from laketier_localfile.pruning import ANY, Range, outcomes, ranges_of
from laketier_localfile.types import check_partition_type

KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.date32(): st.dates(date(1, 1, 1), date(9999, 12, 31)),
    pa.string(): st.text(st.sampled_from("aé\U0001f600"), max_size=70),
    pa.large_string(): st.text(st.sampled_from("ab"), max_size=3),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("ms", "UTC"): st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(
        lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
    ),
}
WITHOUT = (
    pa.float64(), pa.float16(), pa.uint8(), pa.uint64(), pa.timestamp("ns"), pa.decimal128(9, 2), pa.binary(),
    pa.time64("us"), pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.string_view(),
)  # fmt: skip
"""Readers and writers disagree about their order, or Python has no exact value of them."""
_LONGEST = 64


def written(table: pa.Table, **options: Any) -> bytes:
    """A Parquet file as our writer makes it."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def footer(data: bytes) -> Any:
    return pq.read_metadata(io.BytesIO(data))


columns = st.sampled_from(list(KINDS)).flatmap(
    lambda kind: st.lists(st.none() | KINDS[kind], max_size=7).map(lambda values: pa.array(values, kind))
)


@given(columns, st.integers(1, 4))
def test_bounds_and_nulls_are_those_of_the_rows(values: pa.Array, rows_of_a_group: int) -> None:
    """Also where a row group holds nulls alone. A file without rows has no statistics, so nothing is said of it."""
    table = pa.table({"a": values})
    stats = column_stats(footer(written(table, row_group_size=rows_of_a_group)), table.schema)
    present = [value for value in values.to_pylist() if value is not None]
    low, high = (partition_text(edge(present)) if present else None for edge in (min, max))
    if low is not None and high is not None and max(len(low), len(high)) > _LONGEST:
        low = high = None
    assert stats == ({"a": (low, high, values.null_count)} if len(values) else {})
    assert stats_from_text(stats_to_text(stats)) == stats


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.date32()], ids=str)
def test_moments_that_python_does_not_reach_have_no_bounds(kind: pa.DataType) -> None:
    """Their file is written all the same."""
    of = np.int32 if pa.types.is_date32(kind) else np.int64
    most = np.iinfo(of).max // (1000 if kind == pa.timestamp("s") else 1)  # Parquet has no seconds
    for ends in ([-most, 0], [0, most]):
        table = pa.table({"a": pa.array(np.array(ends, of)).cast(kind)})
        assert column_stats(footer(written(table)), table.schema) == {"a": (None, None, 0)}


@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b", "a")], ids=" ".join)
def test_a_column_with_the_path_of_a_field_has_its_own_bounds(names: tuple[str, str]) -> None:
    """Files name both `a.b`, whichever comes first: with the other's bounds its rows would not be found."""
    columns = {"a": pa.array([{"b": 501}, {"b": 502}]), "a.b": pa.array([1, 2])}
    table = pa.table({name: columns[name] for name in names})
    assert column_stats(footer(written(table)), table.schema) == {"a.b": ("1", "2", 0)}


def test_bounds_of_moments_load_no_pandas() -> None:
    """Its import takes a new process longer than all else that it does to stage a file."""
    program = """
import sys
import pyarrow.parquet as pq
from laketier_localfile.parquet import column_stats
footer = pq.read_metadata(sys.argv[1])
stats = column_stats(footer, footer.schema.to_arrow_schema())
print(len(stats), "pandas" in sys.modules)
"""
    kinds = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us") for zone in ("UTC", None)]
    moments = {str(kind): pa.array([1, 2], kind) for kind in kinds}
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        file.write(written(pa.table(moments)))
        file.flush()
        told = subprocess.run([sys.executable, "-c", program, file.name], check=True, capture_output=True, text=True)
    assert told.stdout.split() == ["6", "False"]


def test_bounds_are_kept_for_these_types_alone() -> None:
    assert all(map(has_bounds, KINDS))
    assert not any(map(has_bounds, WITHOUT))
    assert has_bounds(pa.timestamp("s"))
    assert has_bounds(pa.timestamp("us", "Europe/Berlin"))


def test_of_the_first_columns_only() -> None:
    many = pa.table({f"c{i}": [i] for i in range(40)})
    stats = column_stats(footer(written(many)), many.schema)
    assert stats == {f"c{i}": (str(i), str(i), 0) for i in range(32)}


def test_the_column_is_found_by_its_name() -> None:
    """A nested column before it is several in the footer."""
    table = pa.table({"s": [{"id": 1, "b": 2}], "id": [7], "l": [["x"]], "t": ["z"]})
    assert column_stats(footer(written(table)), table.schema) == {"id": ("7", "7", 0), "t": ("z", "z", 0)}


def test_a_column_without_statistics_says_nothing() -> None:
    table = pa.table({"a": [1, None], "b": [2, 3]})
    assert column_stats(footer(written(table, write_statistics=["b"])), table.schema) == {"b": ("2", "3", 0)}


def test_a_row_group_without_bounds_takes_them_from_the_file() -> None:
    """Parquet keeps none of a value of several kilobytes; one of the others is not the greatest then."""
    table = pa.table({"a": ["b", "x" * 10_000]})
    assert not footer(written(table, row_group_size=1)).row_group(1).column(0).statistics.has_min_max
    assert column_stats(footer(written(table, row_group_size=1)), table.schema) == {"a": (None, None, 0)}


FILE = written(pa.table({"id": [1, 2, 3], "t": ["a", None, "b"]}))
FOOTER = len(FILE) - 8 - int.from_bytes(FILE[-8:-4], "little")


@given(st.integers(FOOTER, len(FILE) - 1), st.integers(1, 255))
def test_any_changed_byte_of_a_footer_is_noticed(place: int, change: int) -> None:
    """Also of its length, which may then reach before the file, and of what says that it is one."""
    damaged = bytearray(FILE)
    damaged[place] ^= change
    try:
        found = footer_digest(io.BytesIO(bytes(damaged)), len(FILE))
    except CorruptTable:
        return
    assert found != footer_digest(io.BytesIO(FILE), len(FILE))


@pytest.mark.parametrize("length", range(13))
def test_a_file_that_is_too_short_for_a_footer_has_none(length: int) -> None:
    data = (b"PAR1" + FILE[-8:])[-length:] if length else b""
    with pytest.raises(CorruptTable, match="no Parquet footer"):
        footer_digest(io.BytesIO(data), length)


def test_the_shortest_footer_ends_where_the_file_begins() -> None:
    footer_digest(io.BytesIO(b"PAR1" + b"\0\0\0\0PAR1"), 12)
    with pytest.raises(CorruptTable, match="no Parquet footer"):
        footer_digest(io.BytesIO(b"PAR1" + b"\1\0\0\0PAR1"), 12)
    with pytest.raises(CorruptTable, match="12 bytes instead of 13"):
        footer_digest(io.BytesIO(b"PAR1" + b"\0\0\0\0PAR1"), 13)


texts = st.text(st.sampled_from("ab"), max_size=3)


@given(st.lists(texts, min_size=1, max_size=4), texts)
def test_a_prefix_is_judged_as_its_rows_are(held: list[str], prefix: str) -> None:
    known = {"a": Range(min(held), max(held), nulls=False, values=True)}
    possible = outcomes(Leaf("a", Op.STARTS_WITH, prefix), known)
    assert {text.startswith(prefix) for text in held} <= possible
    if len(set(held)) == 1:
        assert len(possible) == 1, "the bounds say all of one value"


@pytest.mark.parametrize(("stats", "judged"), [(("3", "5", 0), {False}), ((None, None, 0), ANY)])
def test_bounds_that_are_not_known_judge_nothing(stats: tuple[str | None, str | None, int], judged: object) -> None:
    entry = FileEntry("part-x.parquet", 2, 10, 0, (), None, {"footer": "f", "stats": {"a": stats}})
    ranges = ranges_of(entry, pa.schema([("a", pa.int64())]), ["a"], {"a"})
    assert outcomes(Leaf("a", Op.EQ, 9), ranges) == judged


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.timestamp("us"), pa.timestamp("s", "UTC"), pa.int8(),
     pa.uint64(), pa.bool_(), pa.date32(), pa.decimal128(9, 2), pa.decimal256(38, 0)],
)  # fmt: skip
def test_a_table_is_partitioned_by_what_has_an_exact_text(kind: pa.DataType) -> None:
    check_partition_type("k", kind)


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.float64(), pa.binary(), pa.time64("us"), pa.list_(pa.int8())])
def test_and_by_nothing_else(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedType, match=r"'k' of type .* can't be a partition column"):
        check_partition_type("k", kind)


def test_only_what_is_staged_has_an_attempt_that_may_be_discarded() -> None:
    """What lies elsewhere may be live, and what has another name is somebody else's."""
    name = f"part-00003-{'a' * 32}-0001.parquet"
    assert attempt_of_staged(f"__in_progress/{name}.inprogress") == "a" * 32
    for other in (f"__in_progress/{name}", f"__superseded/{name}.inprogress", f"{name}.inprogress", name):
        assert attempt_of_staged(other) is None
