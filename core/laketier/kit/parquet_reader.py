"""Reading of Parquet data files: batches whose memory is bounded by bytes, and the file's name on what is damaged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laketier.spi.errors import CorruptTable

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_DAMAGED = re.compile(r"thrift|magic|end of (stream|file)|[Cc]orrupt|decompress|page integrity|histogram|flatbuffer")
_BATCH_ROWS = 131_072
_BATCH_BYTES = 32 * 1024 * 1024


def open_parquet(file: Any, *, pre_buffer: bool = False, checksums: bool = False) -> pq.ParquetFile:
    """A file of which nobody knows the writer. Spark's and Hive's INT96 is read as microseconds: as nanoseconds, which
    is pyarrow's own choice, moments outside 1677 to 2262 come out as other ones without a word. Driver and executor.
    With ``checksums`` those of pages are looked at, where there are some. Raises ``ArrowInvalid`` for what is no
    Parquet file."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        file, pre_buffer=pre_buffer, coerce_int96_timestamp_unit="us", page_checksum_verification=checksums
    )


def read_batches(file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The file's rows in order. A batch has at most 131,072 rows and is about 32 MiB at most, by the sizes that the
    footer tells; text that a dictionary repeats is larger in memory than they say. Executor."""
    return file.iter_batches(batch_size=_batch_rows(file.metadata, columns), columns=list(columns))


def _batch_rows(footer: pq.FileMetaData, columns: Sequence[str]) -> int:
    wanted = set(columns)
    leaves = [index for index in range(footer.num_columns) if _belongs(footer.schema.column(index).path, wanted)]
    widest = 1
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        size = sum(group.column(index).total_uncompressed_size for index in leaves)
        widest = max(widest, size // max(group.num_rows, 1))
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // widest))


def _belongs(leaf: str, columns: set[str]) -> bool:
    """The dots of a leaf's path part its fields; a column's name may have some, too."""
    return any(start in columns for start in accumulate(leaf.split("."), "{}.{}".format))


@contextmanager
def naming_damage(where: str) -> Iterator[None]:
    """Raise what pyarrow says of a file of Parquet or Arrow that is cut, empty or overwritten as `CorruptTable`. What
    the storage says, such as a time-out, passes."""
    try:
        yield
    except (pa.ArrowInvalid, pa.lib.ArrowIndexError, OSError) as error:
        if isinstance(error, OSError) and (error.errno is not None or not _DAMAGED.search(str(error))):
            raise
        raise CorruptTable(
            "a data file is damaged", where=where, why=str(error).strip(), fix="Restore it from a backup."
        ) from error
