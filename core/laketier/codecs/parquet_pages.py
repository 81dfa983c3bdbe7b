"""The pages of a Parquet file, looked at before Arrow reads them.

A page says how many bytes it expands to, and Arrow reserves as many; a dictionary, or a prefix that values share, may
stand for any number of long values. Neither has to be true, or small, in a file from outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from laketier.codecs.arrow_sizes import largest_value
from laketier.codecs.bounds import BLOCK_BYTES, EXPANSION, MIB
from laketier.codecs.decoding import BadValue
from laketier.codecs.thrift import read_struct

# Numbers of fields in parquet.thrift: of FileMetaData, RowGroup, ColumnChunk, ColumnMetaData and SizeStatistics.
_ROW_GROUPS, _COLUMNS, _META, _CRYPTO, _SIZES = 4, 1, 3, 8, 16
_PLAIN_BYTES, _REPETITIONS, _DEFINITIONS = 1, 2, 3
_TAIL = 8
_DICTIONARY_PAGE = 2
_DELTA_BYTE_ARRAY = 7
_HEADER = 16 * 1024
_LARGEST_HEADER = 16 * MIB
_BATCH_BYTES = 1024 * MIB
_ROWS = 131_072
_MANY = 20
"""Pages of all columns that are open at once may expand to so many times what the file has, above 4 blocks."""


@dataclass(frozen=True)
class BatchLimit:
    """The number of rows of a batch that keeps its memory bounded."""

    batch_rows: int


@dataclass(frozen=True)
class _Page:
    kind: int
    size: int
    compressed: int
    values: int
    encoding: int


def check_pages(
    file: Any,
    size: int,
    footer: pq.FileMetaData,
    groups: Sequence[int],
    allowed: int = BLOCK_BYTES,
    *,
    every: bool = True,
) -> BatchLimit:
    """Check the pages of row groups before they are expanded.

    Args:
        file: The file.
        size: Its bytes.
        footer: Its footer.
        groups: The row groups.
        allowed: The bytes that open pages may expand to.
        every: Check each page, not only the first ones.

    Returns:
        The number of rows to read at once.

    Raises:
        BadValue: A page contradicts the file, or would expand beyond ``allowed``.
    """
    check_chunks(file, size, footer)
    rows = _ROWS
    for group in groups:
        largest, compressed = 0, 0
        for index in range(footer.num_columns):
            column = footer.row_group(group).column(index)
            start, length = _place(column, size)
            _check_rows(footer, group, index, length)
            compressed += length
            if not every:
                continue
            most, longest, values = 0, 0, 0
            for page in _pages(file, start, start + length):
                most = max(most, page.size)
                values += page.values if page.kind != _DICTIONARY_PAGE else 0
                longest = max(longest, _check_page(page, footer.schema.column(index), allowed, column.physical_type))
            largest += most
            rows = min(rows, _rows_at_once(file, footer, group, index, longest, values))
        if largest > max(4 * allowed, _MANY * compressed):
            raise BadValue(f"pages of row group {group} expand to {largest:,} bytes together, of {compressed:,}")
    return BatchLimit(rows)


def check_chunks(file: Any, size: int, footer: pq.FileMetaData) -> None:
    """Check what a footer says of its column chunks, before pyarrow is asked for one: `RowGroupMetaData.column` ends
    the process where C++ would raise (pyarrow 26). Raises `BadValue`.

    Args:
        file: The file.
        size: Its bytes.
        footer: Its footer, as pyarrow has read it.
    """
    file.seek(size - _TAIL)
    length = int.from_bytes(file.read(_TAIL)[:4], "little")
    file.seek(max(0, size - _TAIL - length))
    try:
        groups = read_struct(file.read(length))[0][_ROW_GROUPS]
        chunks = [chunk for group in groups for chunk in enumerate(group[_COLUMNS])]
    except (IndexError, KeyError, TypeError) as error:
        raise BadValue(f"its footer can't be read: {error!r}") from error
    columns = [footer.schema.column(index) for index in range(footer.num_columns)]
    for index, chunk in chunks:
        if not isinstance(chunk, dict) or index >= len(columns) or _CRYPTO in chunk:
            raise BadValue(f"its footer has a chunk of column {index} that can't be read")
        found = chunk.get(_META)
        sizes = found.get(_SIZES) if isinstance(found, dict) else None
        if sizes is None:
            continue
        column = columns[index]
        levels = ((_REPETITIONS, column.max_repetition_level), (_DEFINITIONS, column.max_definition_level))
        wrong = not isinstance(sizes, dict) or any(
            not isinstance(counts := sizes.get(number, []), list) or (counts and len(counts) != most + 1)
            for number, most in levels
        )
        if wrong or (_PLAIN_BYTES in sizes and column.physical_type != "BYTE_ARRAY"):
            raise BadValue(f"its footer contradicts itself about the levels of column {column.path!r}")


def _rows_at_once(file: Any, footer: pq.FileMetaData, group: int, index: int, longest: int, values: int) -> int:
    """So many rows of a column stay within bounds, of values that are at most ``longest`` where one text may stand for
    many. Raises `BadValue` for a row that alone is beyond."""
    each = max(1, values // max(1, footer.row_group(group).num_rows))  # in a row of a repeated column
    if 8 * each > _BATCH_BYTES:
        raise BadValue(f"a row of row group {group} has {each:,} values")
    rows = min(_ROWS, max(1, _BATCH_BYTES // (8 * each)))
    column = footer.row_group(group).column(index)
    if longest * max(values, _ROWS) <= _BATCH_BYTES:
        return rows
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY" or "DELTA_BYTE_ARRAY" in column.encodings:
        return min(rows, max(1, _BATCH_BYTES // (longest * each)))
    largest = _largest_row(file, column.path_in_schema, group, footer.schema.column(index).max_repetition_level > 0)
    if largest is None:
        return min(rows, max(1, _BATCH_BYTES // (longest * each)))
    if largest > _BATCH_BYTES:
        raise BadValue(f"a row of row group {group} expands to {largest:,} bytes")
    return min(rows, max(1, _BATCH_BYTES // max(1, largest)))


def with_rows(footer: pq.FileMetaData, groups: Sequence[int]) -> list[int]:
    """Those of ``groups`` that have rows. One without any need not have pages where its footer tells."""
    return [group for group in groups if footer.row_group(group).num_rows]


def _place(column: Any, size: int) -> tuple[int, int]:
    start = column.data_page_offset
    if column.dictionary_page_offset is not None and 0 < column.dictionary_page_offset < start:
        start = column.dictionary_page_offset
    length = column.total_compressed_size
    if start < 0 or length < 0 or start + length > size:
        raise BadValue(f"its footer claims a column at {start:,} of {length:,} bytes, and the file has {size:,}")
    return start, length


def _check_rows(footer: pq.FileMetaData, group: int, index: int, length: int) -> None:
    """A row has at least one value in each column, be it null: of a flat one just one."""
    rows = footer.row_group(group).num_rows
    values = footer.row_group(group).column(index).num_values
    flat = footer.schema.column(index).max_repetition_level == 0
    if rows < 0 or values < rows or (flat and values != rows) or (rows and not length):
        raise BadValue(f"its footer claims {rows:,} rows of {values:,} values in row group {group}")


def _pages(file: Any, at: int, end: int) -> Iterator[_Page]:
    while at < end:
        found, taken = _header(file, at, end)
        page = _page(found)
        if page.compressed < 0 or page.size < 0 or at + taken + page.compressed > end:
            raise BadValue(f"a page claims {page.compressed:,} bytes, where {end - at - taken:,} are left")
        yield page
        at += taken + page.compressed


def _header(file: Any, at: int, end: int) -> tuple[dict[int, Any], int]:
    length = _HEADER
    while True:
        file.seek(at)
        try:
            return read_struct(file.read(min(length, end - at)))
        except IndexError:
            if length >= min(end - at, _LARGEST_HEADER):
                raise BadValue("the header of a page is damaged") from None
        length *= 16


def _page(found: dict[int, Any]) -> _Page:
    try:
        inner = found.get(5) or found.get(7) or found.get(8) or {}
        encoding = inner.get(4, 0) if 8 in found else inner.get(2, 0)
        return _Page(int(found[1]), int(found[2]), int(found[3]), int(inner.get(1, 0)), int(encoding))
    except (KeyError, TypeError, AttributeError):
        raise BadValue("the header of a page is damaged") from None


def _check_page(page: _Page, column: Any, allowed: int, physical: str) -> int:
    """How long one text of it may be at most, where one may stand for many."""
    if page.size > max(allowed, EXPANSION * page.compressed):
        raise BadValue(
            f"a page of {page.compressed:,} bytes expands to {page.size:,}, beyond max-block-bytes = {allowed:,}"
        )
    if column.max_repetition_level and 8 * page.values > max(allowed, EXPANSION * page.compressed):
        raise BadValue(f"a page of {page.compressed:,} bytes claims {page.values:,} values")
    if physical == "FIXED_LEN_BYTE_ARRAY":
        return int(column.length)
    shared = page.kind == _DICTIONARY_PAGE or page.encoding == _DELTA_BYTE_ARRAY
    return page.size if shared and physical == "BYTE_ARRAY" else 0


def _largest_row(file: Any, path: str, group: int, repeated: bool) -> int | None:
    """How many bytes the largest row of a column has, whose texts are in a dictionary; None where Arrow does not tell.
    Of a column that is not repeated the longest text is enough."""
    file.seek(0)
    parquet = pq.ParquetFile(file, read_dictionary=[path])
    largest = None
    for batch in parquet.iter_batches(_ROWS if repeated else 1, row_groups=[group], columns=[path]):
        column = batch.column(0)
        if pt.is_dictionary(column.type):
            return int(pc.max(pc.binary_length(column.dictionary)).as_py() or 0)
        if not repeated:
            return None
        largest = max(largest or 0, largest_value(column))
    return largest
