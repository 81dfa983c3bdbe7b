"""Files without a footer that tells them apart: a digest over all bytes, taken while they are written, and statistics.

The digest is looked at before the first row is read. So no row of a damaged file is ever seen, at the cost of one more
pass over it (2 GB/s per core; parsing JSON takes ten times as long).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.kit.data_file import ClosedFile
from laketier.kit.partition import in_utc, partition_text
from laketier.spi import CorruptTable
from laketier_localfile.file_formats.interface import Described, FileFormat, Measured, Wanted
from laketier_localfile.parquet import MAX_COLUMNS, MAX_TEXT, Stats, has_bounds

BATCH_ROWS = 131_072
BATCH_BYTES = 32 << 20
"""A batch that is written or read has at most so many rows, and about so many bytes in memory."""
_ALL_ROWS = 1 << 62
DIGITS = 32
_CHUNK = 1 << 20
_END = 1 << 16


class WholeFileFormat(FileFormat):
    """A `FileFormat` of files that are digested from end to end while they are written. Its `GrowingFile.close` gives
    their `Described`."""

    def describe(self, file: ClosedFile, schema: pa.Schema, data: pa.NativeFile) -> Described:
        described: Described = file.footer
        return described

    def seal(self, file: pa.NativeFile, size: int) -> str:
        return ends_digest(file, size)

    def check(self, file: pa.NativeFile, size: int, digest: str) -> bool:
        return whole_digest(file, size) == digest

    def measure(self, file: pa.NativeFile, path: str, size: int, schema: pa.Schema, *, own: bool) -> Measured:
        if not own:
            return measured(file, size, schema, lambda: self.lying_rows(file, path, size, schema))
        return measured(file, size, schema, lambda: self.read(file, path, Wanted(schema, schema, _ALL_ROWS)))


def measured(
    file: pa.NativeFile, size: int, schema: pa.Schema, read: Callable[[], Iterator[pa.RecordBatch]]
) -> Measured:
    """The digest of a file, and of the batches that ``read`` gives of it the number of rows and the statistics. They
    have all columns of ``schema``."""
    digest = whole_digest(file, size)
    stats, rows = RunningStats(schema), 0
    for batch in read():
        rows += batch.num_rows
        stats.add(pa.Table.from_batches([batch]))
    return Measured(rows, Described(digest, stats.result()))


class HashedSink:
    """Passes bytes on to ``stream``, and digests them. A file object for `pyarrow.PythonFile`, too."""

    closed = False

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    def write(self, data: Any) -> int:
        self._hash.update(data)
        self._stream.write(data)
        return len(data)

    def tell(self) -> int:
        return int(self._stream.tell())

    def flush(self) -> None:
        """The stream is flushed when the `RollingWriter` closes it."""

    def close(self) -> None:
        """The stream belongs to the `RollingWriter`."""

    def digest(self) -> str:
        return self._hash.hexdigest()[:DIGITS]


def whole_digest(file: pa.NativeFile, size: int) -> str:
    """What `HashedSink.digest` gave of a file of ``size`` bytes. Raises `CorruptTable` where it is not that long."""
    _check_size(file, size)
    found = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        found.update(chunk)
    file.seek(0)
    return found.hexdigest()[:DIGITS]


def ends_digest(file: pa.NativeFile, size: int) -> str:
    """A digest of the first and the last 64 KiB of a file of ``size`` bytes. Raises as `whole_digest`."""
    _check_size(file, size)
    found = hashlib.sha256(file.read(_END))
    file.seek(max(size - _END, 0))
    found.update(file.read(_END))
    file.seek(0)
    return found.hexdigest()[:DIGITS]


def _check_size(file: pa.NativeFile, size: int) -> None:
    actual = file.seek(0, 2)
    if actual != size:
        raise CorruptTable(f"the file has {actual} bytes instead of {size}")
    file.seek(0)


@dataclass
class _Column:
    low: Any = None
    high: Any = None
    nulls: int = 0
    unknown: bool = False


class RunningStats:
    """Statistics of the rows that went into a file, by the rules of `laketier_localfile.parquet.column_stats`."""

    def __init__(self, schema: pa.Schema) -> None:
        self._columns = {field.name: _Column() for field in list(schema)[:MAX_COLUMNS] if has_bounds(field.type)}

    def add(self, table: pa.Table) -> None:
        """Count these rows, too."""
        for name, column in self._columns.items():
            values = table.column(name)
            column.nulls += values.null_count
            if column.unknown or values.null_count == len(values):
                continue
            try:
                ends = pc.min_max(in_utc(values)).as_py()
            except (ValueError, OverflowError):
                column.unknown = True  # Arrow's moments and days reach further than Python's.
                continue
            column.low = ends["min"] if column.low is None else min(column.low, ends["min"])
            column.high = ends["max"] if column.high is None else max(column.high, ends["max"])

    def result(self) -> Stats:
        """The statistics of all rows so far."""
        return {name: (*_texts(column), column.nulls) for name, column in self._columns.items()}


def _texts(column: _Column) -> tuple[str | None, str | None]:
    if not column.unknown:
        with suppress(ValueError, OverflowError):
            low, high = partition_text(column.low), partition_text(column.high)
            if low is not None and high is not None and max(len(low), len(high)) <= MAX_TEXT:
                return low, high
    return None, None


def pieces(table: pa.Table, rows: int = BATCH_ROWS, size: int = BATCH_BYTES) -> Iterator[pa.Table]:
    """``table`` in pieces of at most ``rows`` rows and about ``size`` bytes in memory."""
    each = max(1, min(rows, int(table.num_rows * size / max(table.nbytes, 1))))
    for start in range(0, table.num_rows, each):
        yield table.slice(start, each)
