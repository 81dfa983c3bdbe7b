"""The rows of one file, by format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from laketier.codecs.arrow_ipc import ipc_file, ipc_schema
from laketier.codecs.avro_files import AvroFile
from laketier.codecs.bounds import CELLS, MIB
from laketier.codecs.csv_values import CsvDecoder, header_of
from laketier.codecs.decoding import BadValue, Decoder
from laketier.codecs.expansion import BoundedStream, Bzip2Stream
from laketier.codecs.json_values import JsonDecoder
from laketier.codecs.lines import LineBlock, OnBadLine, columns_in, parse_lines, read_blocks
from laketier.codecs.parquet_pages import check_pages, with_rows
from laketier.codecs.said import said, shown
from laketier.connectors.files.local import escaped
from laketier.connectors.files.options import ExtraColumns, FileFormat, LandingTableOptions
from laketier.connectors.files.watched import Storage, WatchedFile
from laketier.connectors.parquet_parts import BATCH_ROWS, null_rows, read_row_groups
from laketier.kit.conform import conform, fits
from laketier.kit.parquet_reader import open_parquet
from laketier.spi import (
    BadRecord,
    ConfigError,
    FindUnstorable,
    IncompatibleData,
    LaketierError,
    OnBadRecord,
    StorageError,
    UnsupportedType,
)
from laketier.tables.promotion import promoted, widened

COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
_IN_MEMORY = 32 * MIB


class UnreadableFile(Exception):
    """The file, or what is left of it, holds no rows of the table. Its text says why."""


@dataclass(frozen=True)
class FileReader:
    """Reads files of one table. ``schema``: all its columns. ``is_local``: whether the storage is a disk, whose errors
    have numbers."""

    schema: pa.Schema
    options: LandingTableOptions
    is_local: bool

    def read(
        self,
        file: Any,
        path: str,
        size: int,
        wanted: pa.Schema,
        groups: range | None,
        on_bad_line: OnBadLine,
        find_unstorable: FindUnstorable | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in exactly ``wanted``, some of ``schema``. ``groups``: these row groups of a Parquet file only.
        ``find_unstorable``: of lines alone, those of the rows that it finds are bad. Raises `UnreadableFile`, and what
        the two that are called raise."""
        storage = None if self.is_local else Storage()
        raw, file = file, file if storage is None else WatchedFile(file, storage)
        match self.options.format:
            case FileFormat.JSON | FileFormat.CSV:
                # All columns are parsed, so that which records are bad does not depend on the columns that are read.
                yield from self._lines(file, path, size, wanted, on_bad_line, storage, find_unstorable)
            case FileFormat.PARQUET if not self.is_local and size > _IN_MEMORY:
                yield from self._parquet_from_afar(raw, size, wanted, groups)
            case FileFormat.PARQUET:
                yield from _safely(self._parquet(file, size, wanted, groups), storage)
            case FileFormat.ARROW:
                yield from _safely(self._arrow(file, size, wanted), storage)
            case FileFormat.AVRO:
                yield from _safely(self._avro(file, path, size, wanted), storage)

    def _parquet_from_afar(
        self, file: Any, size: int, wanted: pa.Schema, groups: range | None
    ) -> Iterator[pa.RecordBatch]:
        """Arrow itself reads a large file at many places at once. Whose an error is shows when it is read once more,
        watched: a bad file is one whose bytes came and are damaged."""
        try:
            yield from _safely(self._parquet(file, size, wanted, groups), Storage(failed=True))
        except OSError as error:
            if error.errno is None:
                storage = Storage()
                again = pa.PythonFile(WatchedFile(file, storage), mode="r")
                for _ in _safely(self._parquet(again, size, wanted, groups), storage):
                    pass
            raise

    def _parquet(self, file: Any, size: int, wanted: pa.Schema, groups: range | None) -> Iterator[pa.RecordBatch]:
        file = file if self.is_local or size > _IN_MEMORY else pa.BufferReader(file.read(size))
        parquet = open_parquet(file, pre_buffer=True)
        self._check(parquet.schema_arrow)
        some = with_rows(parquet.metadata, groups or range(parquet.num_row_groups))
        # To look at each page of a large file in an object store would cost more than to read it.
        limit = check_pages(
            file,
            size,
            parquet.metadata,
            some,
            self.options.max_block_bytes,
            every=self.is_local or size <= _IN_MEMORY,
        )
        for batch in read_row_groups(parquet, some, wanted, min(_rows_of(wanted), limit.batch_rows)):
            # Parquet's reader takes a text's bytes at their word. The lake refuses them, and nobody's file then.
            batch.validate(full=True)
            yield batch

    def _arrow(self, file: Any, size: int, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        self._check(ipc_schema(file, size))
        file.seek(0)
        rows = _rows_of(wanted)
        for batch in ipc_file(file, size, self.options.max_block_bytes):
            for start in range(0, batch.num_rows, rows):
                yield _conformed(batch.slice(start, rows), wanted)

    def _avro(self, file: Any, path: str, size: int, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        avro = AvroFile.open(file, size, where=path)
        self._check(avro.schema)
        for batch in avro.batches(self.options.max_block_bytes):
            yield _conformed(batch, wanted)

    def _lines(
        self,
        file: Any,
        path: str,
        size: int,
        wanted: pa.Schema,
        on_bad_line: OnBadLine,
        storage: Storage | None,
        find_unstorable: FindUnstorable | None,
    ) -> Iterator[pa.RecordBatch]:
        def refused(rows: pa.RecordBatch) -> Mapping[int, str]:
            with unreadable():
                rows = _conformed(rows, wanted)
            assert find_unstorable is not None
            return find_unstorable(rows)

        finds = None if find_unstorable is None else refused
        decoder: Decoder | None = None
        most = self.options.max_record_bytes
        for block in self._blocks(file, path, size, storage):
            if block.long and decoder is None and self.options.format is FileFormat.CSV and self.options.header:
                raise UnreadableFile(
                    f"its header has {block.long:,} bytes, more than max-record-bytes = {most:,} allows"
                )
            if block.long:
                why = f"it has {block.long:,} bytes, more than max-record-bytes = {most:,} allows; they were not kept"
                on_bad_line(block.first, None, why)
                continue
            skipped = 0
            if decoder is None:
                with unreadable():
                    decoder, skipped = self._decoder(block.data)
            first = block.first + block.data.count(b"\n", 0, skipped)
            for batch in parse_lines(block.data[skipped:], first, decoder, on_bad_line, finds):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    with unreadable():
                        part = _conformed(batch.slice(start, BATCH_ROWS), wanted)
                    yield part

    def _blocks(self, file: Any, path: str, size: int, storage: Storage | None) -> Iterator[LineBlock]:
        with unreadable(storage):
            stream = bounded_stream(file, path, size, self.options)
            yield from read_blocks(stream, longest=self.options.max_record_bytes)
        # Text has no end of its own: what a storage that fails calls the end would be taken for it.
        if (came := file.tell()) < size:
            raise StorageError(
                f"the file ended after {came} of its {size} bytes",
                where=escaped(path),
                why="the storage gave no more, and calls it as large as before",
                fix="Nothing was published. The next round reads it again.",
            )

    def _decoder(self, block: bytes) -> tuple[Decoder, int]:
        """What reads the lines of a file that begins with ``block``, and how many bytes of it are its header."""
        if self.options.format is FileFormat.JSON:
            return decoder_of(self.schema, self.options), 0
        names, skipped = csv_header(block, self.options, self.schema)
        self._check(pa.schema([(name, pa.null()) for name in names]))
        return decoder_of(self.schema, self.options, names), skipped

    def _check(self, found: pa.Schema) -> None:
        known = set(self.schema.names)
        refuse_twice([name for name in found.names if name in known])
        extra = [name for name in found.names if name not in known]
        if extra and self.options.extra_columns is ExtraColumns.FAIL:
            raise UnreadableFile(f"it has columns {shown(str(extra))} that the table has not")
        if extra and len(extra) == len(found.names):
            raise UnreadableFile(f"its columns are {shown(', '.join(extra))}, none of the table's")
        for name in self.schema.names:
            if name in found.names and not _can_be(found.field(name).type, self.schema.field(name).type):
                kinds = f"{found.field(name).type}, and the table's is {self.schema.field(name).type}"
                raise UnreadableFile(f"its column {name!r} is {kinds}")


def decoder_of(schema: pa.Schema, options: LandingTableOptions, names: Sequence[str] = ()) -> Decoder:
    """For lines. ``names``: the columns of a CSV file, those of the table unless given."""
    most = options.max_record_bytes
    if options.format is FileFormat.JSON:
        return JsonDecoder(schema, options.extra_columns is ExtraColumns.IGNORE, needs_a_column=True, record_bytes=most)
    return CsvDecoder(schema, tuple(names or schema.names), options.delimiter, record_bytes=most)


def decode_lines(
    records: Sequence[BadRecord], schema: pa.Schema, options: LandingTableOptions, on_bad_record: OnBadRecord
) -> Iterator[pa.RecordBatch]:
    """The rows of lines that were kept, as `TableLog.decode` gives them."""
    decoder = decoder_of(schema, options)
    lines: list[BadRecord] = []
    for record in records:
        if not options.format.is_text or record.value is None:
            on_bad_record(replace(record, error="its bytes were not kept; land the corrected rows in a new file"))
        elif b"\n" in record.value:
            on_bad_record(replace(record, error="it is more than one line"))
        elif not record.value.strip(decoder.blanks):
            on_bad_record(replace(record, error="it is blank"))
        else:
            lines.append(record)
    decoded = decoder.decode([record.value or b"" for record in lines])
    for one in decoded.bad:
        on_bad_record(replace(lines[one.index], error=one.error))
    for start in range(0, decoded.rows.num_rows, BATCH_ROWS):
        yield _conformed(decoded.rows.slice(start, BATCH_ROWS), schema)


def csv_header(block: bytes, options: LandingTableOptions, schema: pa.Schema | None) -> tuple[list[str], int]:
    """The names of a CSV file's columns, and how many bytes tell them. Raises `UnreadableFile`."""
    if not options.header:
        return list(schema.names if schema is not None else options.columns), 0
    skipped = 0
    while skipped < len(block):
        end = block.find(b"\n", skipped) + 1 or len(block)
        line, skipped = block[skipped:end], end
        if line.strip():
            try:
                return header_of(line, options.delimiter), skipped
            except ValueError as error:
                raise UnreadableFile(said(error)) from error
    raise UnreadableFile("it has no header")


def refuse_twice(names: Sequence[str]) -> None:
    """Raise `UnreadableFile` for two columns of one name."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise UnreadableFile(f"it has columns {shown(str(twice))} twice, and nothing says which one counts")


def bounded_stream(file: Any, path: str, size: int, options: LandingTableOptions) -> Any:
    """The text of a file, which may be compressed, as its name says."""
    codec = next((codec for ending, codec in COMPRESSED.items() if path.lower().endswith(ending)), None)
    if codec is None:
        return file
    if codec == "bz2":
        return BoundedStream(Bzip2Stream(file), size, options.max_expansion)
    file = file if isinstance(file, pa.NativeFile) else pa.PythonFile(file, mode="r")
    return BoundedStream(pa.CompressedInputStream(file, codec), size, options.max_expansion)


def check_types(schema: pa.Schema, options: LandingTableOptions, *, origin: str) -> None:
    """Raises `ConfigError` for columns whose types the format can't hold."""
    decoder = decoder_of(schema, options)
    if options.format.is_text and isinstance(decoder, JsonDecoder | CsvDecoder):
        decoder.check(prefix="read.columns.", where=origin)


def _conformed(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    names = [name for name in wanted.names if name in batch.schema.names]
    return conform(widened(batch.select(names), wanted), wanted) if names else null_rows(batch.num_rows, wanted)


def _can_be(found: pa.DataType, wanted: pa.DataType) -> bool:
    return fits(found, wanted) or promoted(found, wanted) == wanted


def _rows_of(schema: pa.Schema) -> int:
    """So many at once. A file may have rows that say nothing of most columns, and take no bytes."""
    return max(1, min(BATCH_ROWS, CELLS // columns_in(schema)))


def _safely(batches: Iterator[pa.RecordBatch], storage: Storage | None) -> Iterator[pa.RecordBatch]:
    while True:
        with unreadable(storage):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@contextmanager
def unreadable(storage: Storage | None = None) -> Iterator[None]:
    """The boundary of a file: whatever a library raises over its bytes is its own trouble. Arrow says some of it as an
    ``OSError``, without a number. ``storage``: where that may be the network's too."""
    try:
        yield
    except (UnreadableFile, GeneratorExit):
        raise
    except OSError as error:
        if error.errno is not None or (storage is not None and storage.failed):
            raise
        raise UnreadableFile(f"it is damaged: {said(error)}") from error
    except BadValue as error:
        raise UnreadableFile(said(error)) from error
    except (IncompatibleData, ConfigError, UnsupportedType) as error:  # of its columns
        # Its file is told beside it, and what to do about such a file.
        raise UnreadableFile(said(type(error)(error.what, why=error.why))) from error
    except (LaketierError, ImportError):
        raise
    except Exception as error:
        raise UnreadableFile(f"it is damaged, or of another format: {said(error)}") from error
