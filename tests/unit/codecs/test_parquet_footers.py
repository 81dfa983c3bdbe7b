"""Footers that contradict themselves: pyarrow 26 ends the process that asks for such a column chunk."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laketier.codecs.decoding import BadValue
from laketier.codecs.parquet_pages import check_chunks
from laketier.connectors.folder import ParquetFolder
from laketier.spi import CorruptTable, ScanRequest

# The optional column of longs has a histogram of two definition levels. It says that it is required.
TABLE = pa.table({"n": pa.array([1, None, 3]), "l": pa.array([[1], [], None]), "s": ["a", None, "c"]})


def written(table: pa.Table = TABLE) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def contradicting() -> bytes:
    """The schema's element of ``n`` with the repetition 0 (required) instead of 1."""
    data = written()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # SchemaElement: type (i32 2, in zigzag 4), repetition (i32 1: 2), name (binary of one letter).
    at = data.index(b"\x15\x04\x25\x02\x18\x01n", footer)
    return data[: at + 3] + b"\x00" + data[at + 4 :]


def test_a_footer_that_contradicts_itself_is_refused() -> None:
    data = contradicting()
    footer = pq.ParquetFile(io.BytesIO(data)).metadata
    with pytest.raises(BadValue, match="levels of column 'n'"):
        check_chunks(io.BytesIO(data), len(data), footer)


def test_a_folder_with_such_a_file_ends_no_process(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(contradicting())
    folder = ParquetFolder(str(tmp_path))
    plan = folder.plan(ScanRequest())
    with pytest.raises(CorruptTable, match=r"a\.parquet.*histogram"):
        list(folder.read(plan.splits[0], plan.schema))


KINDS = [
    pa.int64(),
    pa.string(),
    pa.list_(pa.int32()),
    pa.struct([("a", pa.binary())]),
    pa.map_(pa.string(), pa.int8()),
]


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4), st.integers(0, 3))
def test_footers_of_pyarrow_are_taken(kinds: list[pa.DataType], rows: int) -> None:
    data = written(pa.table({str(index): pa.nulls(rows, kind) for index, kind in enumerate(kinds)}))
    check_chunks(io.BytesIO(data), len(data), pq.ParquetFile(io.BytesIO(data)).metadata)


@given(st.binary(max_size=40), st.integers(0, 400))
def test_no_footer_ends_the_check_otherwise_than_by_its_error(noise: bytes, at: int) -> None:
    data = written()
    footer = pq.ParquetFile(io.BytesIO(data)).metadata
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    place = min(start + at, len(data) - 8 - len(noise))
    hostile = data[:place] + noise + data[place + len(noise) :]
    with suppress(BadValue):
        check_chunks(io.BytesIO(hostile), len(hostile), footer)
