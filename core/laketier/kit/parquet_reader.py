"""Reading of Parquet data files: batches whose memory is bounded by bytes, and the file's name on what is damaged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laketier.spi.errors import CorruptTable

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_STORAGE = re.compile(
    r"AWS Error|curlCode|google::cloud|GCS|Azure|HDFS|HTTP|SSL|TLS|[Cc]redential|[Cc]onnection|[Nn]etwork|"
    r"[Tt]im(?:e|ed)[ -]?out|When (?:reading|getting|opening)"
)
"""What pyarrow says where a store does not answer. Of a file's content it says hundreds of things, as `OSError` too."""
_NOT_KNOWN = re.compile(r"[Nn]ot (?:yet )?(?:implemented|supported)|[Uu]nsupported")
_BATCH_ROWS = 131_072
_BATCH_BYTES = 32 * 1024 * 1024


def open_parquet(file: Any, *, pre_buffer: bool = False, checksums: bool = True) -> pq.ParquetFile:
    """A file of which nobody knows the writer. Spark's and Hive's INT96 is read as microseconds: as nanoseconds, which
    is pyarrow's own choice, moments outside 1677 to 2262 come out as other ones without a word. Driver and executor.
    With ``checksums`` those of pages are looked at, where there are some, as in what Spark writes: pyarrow by itself
    hands over what a damaged page holds. Raises ``ArrowInvalid`` for what is no Parquet file."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        file, pre_buffer=pre_buffer, coerce_int96_timestamp_unit="us", page_checksum_verification=checksums
    )


def read_batches(file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The file's rows in order. A batch has at most 131,072 rows and is about 32 MiB at most: by the width of its
    types, and where one has none, by the sizes of all columns that the footer tells. Text that a dictionary repeats is
    larger in memory than they say. Raises what `all_rows` does. Executor.

    The footer's sizes of single columns would be closer, but pyarrow ends the process where what it tells of a column
    can't be: its `RowGroupMetaData.column` has no way to raise."""
    batches = file.iter_batches(batch_size=_batch_rows(file, columns), columns=list(columns))
    return all_rows(batches, file.metadata.num_rows)


def all_rows(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The ``batches``, in which the footer claims so many ``rows``. A page whose kind pyarrow does not know is passed
    over, with its rows: so raises ``ArrowInvalid`` at their end for another number."""
    found = 0
    for batch in batches:
        found += batch.num_rows
        yield batch
    if found != rows:
        raise pa.ArrowInvalid(f"its pages hold {found:,} rows, and its footer claims {rows:,}")


def _batch_rows(file: pq.ParquetFile, columns: Sequence[str]) -> int:
    footer, wanted = file.metadata, set(columns)
    widths = [_bits(field.type) for field in file.schema_arrow if field.name in wanted]
    widest = sum(width or 0 for width in widths) // 8
    if None in widths:
        groups = (footer.row_group(number) for number in range(footer.num_row_groups))
        widest = max([widest, *(group.total_byte_size // max(group.num_rows, 1) for group in groups)])
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(widest, 1)))


def _bits(kind: pa.DataType) -> int | None:
    """Of a value in memory; None where values have lengths of their own."""
    if pa.types.is_struct(kind):
        inside = [_bits(field.type) for field in kind]
        return None if None in inside else sum(width or 0 for width in inside)
    if pa.types.is_fixed_size_list(kind):
        each = _bits(kind.value_type)
        return None if each is None else each * kind.list_size
    if pa.types.is_null(kind):
        return 0
    try:
        return int(kind.bit_width)
    except ValueError:
        return None


@contextmanager
def naming_damage(where: str) -> Iterator[None]:
    """Raise what pyarrow says of a file of Parquet or Arrow that is gone, cut, empty, overwritten, or has a bit of
    another value as `CorruptTable`. What the system or a store says else, such as a time-out, passes; so does a want of
    memory."""
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptTable(
            "a data file is missing",
            where=where,
            why="something deleted it that does not know the table, or its snapshot expired while it was read",
            fix="Restore the file, or read another snapshot.",
        ) from error
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, (MemoryError, pa.lib.ArrowCancelled)) or _is_of_the_storage(error):
            raise
        why = str(error).strip()
        is_new = isinstance(error, pa.ArrowNotImplementedError) or _NOT_KNOWN.search(why) is not None
        raise CorruptTable(
            "a data file can't be read" if is_new else "a data file is damaged",
            where=where,
            why=why,
            fix=f"{'If another tool reads it: upgrade pyarrow. Otherwise restore' if is_new else 'Restore'} it from a "
            "backup.",
        ) from error


def _is_of_the_storage(error: Exception) -> bool:
    """The system tells a number, libraries of stores have classes of their own, and pyarrow's stores have words."""
    if not isinstance(error, OSError) or isinstance(error, pa.ArrowException):
        return False
    return error.errno is not None or type(error) is not OSError or _STORAGE.search(str(error)) is not None
