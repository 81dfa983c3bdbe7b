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

from laketier.codecs.bounds import BLOCK_BYTES, EXPANSION, MIB
from laketier.codecs.decoding import BadValue
from laketier.codecs.thrift import read_struct

_DICTIONARY_PAGE = 2
_DELTA_BYTE_ARRAY = 7
_HEADER = 16 * 1024
_LARGEST_HEADER = 16 * MIB
_BATCH_BYTES = 1024 * MIB
_ROWS = 131_072
_MANY = 20
"""Pages of all columns that are open at once may expand to so many times what the file has, above 4 blocks."""


@dataclass(frozen=True)
class Looked:
    """``batch_rows``: with so many rows at once, no batch grows beyond bounds."""

    batch_rows: int


@dataclass(frozen=True)
class _Page:
    kind: int
    size: int
    compressed: int
    values: int
    encoding: int


def looked_at(
    file: Any,
    size: int,
    footer: pq.FileMetaData,
    groups: Sequence[int],
    allowed: int = BLOCK_BYTES,
    *,
    every: bool = True,
) -> Looked:
    """Look at row groups of ``file``, which has ``size`` bytes. ``every``: at each page. Raises `BadValue` for what
    can't be, or would expand beyond ``allowed``."""
    longest = 0
    for group in groups:
        largest, compressed = 0, 0
        for index in range(footer.num_columns):
            column = footer.row_group(group).column(index)
            start, length = _place(column, size)
            _check_rows(footer, group, index, length)
            compressed += length
            if not every:
                continue
            most, string = 0, 0
            for page in _pages(file, start, start + length):
                most = max(most, page.size)
                string = max(string, _check_page(page, footer.schema.column(index), allowed, column.physical_type))
            largest += most
            if string * _ROWS > _BATCH_BYTES and column.physical_type == "BYTE_ARRAY":
                longest = max(longest, _longest(file, group, index, footer, string))
        if largest > max(4 * allowed, _MANY * compressed):
            raise BadValue(f"pages of row group {group} expand to {largest:,} bytes together, of {compressed:,}")
    return Looked(_ROWS if not longest else max(1, min(_ROWS, _BATCH_BYTES // longest)))


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
    shared = page.kind == _DICTIONARY_PAGE or page.encoding == _DELTA_BYTE_ARRAY
    return page.size if shared and physical == "BYTE_ARRAY" else 0


def _longest(file: Any, group: int, index: int, footer: pq.FileMetaData, most: int) -> int:
    """The longest text of a dictionary, which Arrow tells; ``most`` where it can't."""
    path = footer.row_group(group).column(index).path_in_schema
    if "DELTA_BYTE_ARRAY" in footer.row_group(group).column(index).encodings or "." in path:
        return most
    file.seek(0)
    parquet = pq.ParquetFile(file, read_dictionary=[path])
    batch = next(parquet.iter_batches(1, row_groups=[group], columns=[path]), None)
    column = None if batch is None else batch.column(0)
    if column is None or not hasattr(column, "dictionary"):
        return most
    lengths = pc.binary_length(column.dictionary)
    return int(pc.max(lengths).as_py() or 0)
