"""Parquet files in parts: consecutive row groups, read on their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from laketier.kit.conform import conform
from laketier.kit.parquet_reader import all_rows, open_parquet
from laketier.spi import CorruptTable
from laketier.tables.promotion import widened

BATCH_ROWS = 131_072


def read_footer(filesystem: fs.FileSystem, path: str) -> tuple[pq.FileMetaData, pa.Schema]:
    """The footer of a file, and its columns. Raises `CorruptTable` when it is not a whole Parquet file."""
    try:
        with filesystem.open_input_file(path) as file:
            parquet = open_parquet(file)
            return parquet.metadata, parquet.schema_arrow
    except pa.ArrowInvalid as error:
        raise CorruptTable(
            "the file is not a whole Parquet file",
            where=path,
            why=str(error),
            fix="Land files under a hidden name (_x or .x) and rename them when they are complete.",
        ) from error


def row_group_ranges(footer: pq.FileMetaData, size: int, most: int) -> Iterator[tuple[int, int, int, int]]:
    """(first, last, rows, bytes) of consecutive row groups that together stay near ``most`` of the file's ``size``
    bytes. A group's share is that of its bytes before compression: to ask for those of its columns would end the
    process where the footer contradicts itself (pyarrow 26)."""
    plain = [footer.row_group(index).total_byte_size for index in range(footer.num_row_groups)]
    scale = size / max(1, sum(plain))
    first, rows, taken = 0, 0, 0
    for index, expanded in enumerate(plain):
        compressed = int(expanded * scale)
        if rows and taken + compressed > most:
            yield first, index - 1, rows, taken
            first, rows, taken = index, 0, 0
        rows += footer.row_group(index).num_rows
        taken += compressed
    if rows:
        yield first, footer.num_row_groups - 1, rows, taken


def read_row_groups(
    parquet: pq.ParquetFile, groups: Sequence[int], schema: pa.Schema, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Their rows in exactly ``schema``; columns that the file lacks are null. Raises `IncompatibleData`, and what
    `all_rows` does."""
    names = [name for name in schema.names if name in parquet.schema_arrow.names]
    claimed = sum(parquet.metadata.row_group(group).num_rows for group in groups)
    for batch in all_rows(parquet.iter_batches(batch_rows, row_groups=list(groups), columns=names), claimed):
        yield conform(widened(batch, schema), schema) if names else null_rows(batch.num_rows, schema)


def null_rows(rows: int, schema: pa.Schema) -> pa.RecordBatch:
    """So many rows of ``schema``, all null; a schema without columns keeps their number."""
    if not schema.names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays([pa.nulls(rows, f.type) for f in schema], schema=schema)
