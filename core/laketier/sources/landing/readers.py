"""The rows of one file, by format."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from laketier.sources.landing.avro import arrow_schema, import_fastavro
from laketier.sources.landing.lines import OnBadLine, parse_lines, read_blocks
from laketier.sources.landing.options import ExtraColumns, FileFormat, LandingTableOptions
from laketier.sources.landing.text import CsvLines, JsonLines, header_of, unreadable_columns
from laketier.sources.parquet_parts import BATCH_ROWS, null_rows, read_row_groups
from laketier.spi import BadRecord, ConfigError, IncompatibleData, OnBadRecord
from laketier.spi.conform import conform, fits

_ARROW_FILE = b"ARROW1"
# What Arrow and fastavro raise over damaged bytes: the latter says of a negative length whatever comes of it.
_DAMAGED = (pa.ArrowException, ValueError, LookupError, TypeError, EOFError, ArithmeticError, SystemError, struct.error)


class Unreadable(Exception):
    """The file, or what is left of it, holds no rows of the table. Its text says why."""


@dataclass(frozen=True)
class FileReader:
    """Reads files of one table. ``schema``: all its columns."""

    filesystem: fs.FileSystem
    schema: pa.Schema
    options: LandingTableOptions

    def read(
        self, path: str, wanted: pa.Schema, groups: range | None, on_bad_line: OnBadLine
    ) -> Iterator[pa.RecordBatch]:
        """The rows in exactly ``wanted``, some of ``schema``. ``groups``: these row groups of a Parquet file only.
        Raises `Unreadable`, and what ``on_bad_line`` raises."""
        match self.options.format:
            case FileFormat.PARQUET:
                yield from self._parquet(path, wanted, groups)
            case FileFormat.ARROW:
                yield from self._arrow(path, wanted)
            case FileFormat.AVRO:
                yield from self._avro(path, wanted)
            case FileFormat.JSON | FileFormat.CSV:
                # All columns are parsed, so that which records are bad does not depend on the columns that are read.
                for table in self._lines(path, on_bad_line):
                    with _unreadable():
                        batches = [_conformed(batch, wanted) for batch in table.to_batches(BATCH_ROWS)]
                    yield from batches

    def _parquet(self, path: str, wanted: pa.Schema, groups: range | None) -> Iterator[pa.RecordBatch]:
        with self.filesystem.open_input_file(path) as file, _unreadable(self.is_local):
            parquet = pq.ParquetFile(file, pre_buffer=True)
            self._check(parquet.schema_arrow)
            yield from read_row_groups(parquet, groups or range(parquet.num_row_groups), wanted)

    def _arrow(self, path: str, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self.filesystem.open_input_file(path) as file, _unreadable(self.is_local):
            is_file = file.read(len(_ARROW_FILE)) == _ARROW_FILE
            file.seek(0)
            reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
            self._check(reader.schema)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches)) if is_file else reader
            for batch in batches:
                batch.validate(full=True)
                yield _conformed(batch, wanted)

    def _avro(self, path: str, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        fastavro = import_fastavro()
        with self.filesystem.open_input_stream(path, compression=None) as file, _unreadable(self.is_local):
            reader = fastavro.reader(file)
            found = arrow_schema(fastavro.parse_schema(reader.writer_schema), where=path)
            self._check(found)
            while rows := list(itertools.islice(reader, BATCH_ROWS // 8)):
                yield _conformed(pa.RecordBatch.from_pylist(rows, schema=found), wanted)

    def _lines(self, path: str, on_bad_line: OnBadLine) -> Iterator[pa.Table]:
        with self.filesystem.open_input_stream(path, compression="detect") as file:
            first, parser = 1, None
            for block in _blocks(file, self.is_local):
                skipped = 0
                if parser is None:
                    parser, skipped = self._parser(block)
                before = block.count(b"\n", 0, skipped)
                yield from parse_lines(block[skipped:], first + before, parser, on_bad_line)
                first += block.count(b"\n")

    def _parser(self, block: bytes) -> tuple[JsonLines | CsvLines, int]:
        """What parses the lines of a file that begins with ``block``, and how many bytes of it are its header."""
        if self.options.format is FileFormat.JSON:
            return JsonLines(self.schema, self.options.extra_columns), 0
        names, skipped = csv_header(block, self.options, self.schema)
        self._check(pa.schema([(name, pa.null()) for name in names]))
        if not set(names) & set(self.schema.names):
            raise Unreadable(f"its columns are {', '.join(names)}, none of the table's")
        return CsvLines(names, self.schema, self.options.delimiter), skipped

    def _check(self, found: pa.Schema) -> None:
        extra = [name for name in found.names if name not in self.schema.names]
        if extra and self.options.extra_columns is ExtraColumns.FAIL:
            raise Unreadable(f"it has columns {extra} that the table has not")
        for name in self.schema.names:
            if name in found.names and not fits(found.field(name).type, self.schema.field(name).type):
                kinds = f"{found.field(name).type}, and the table's is {self.schema.field(name).type}"
                raise Unreadable(f"its column {name!r} is {kinds}")

    @property
    def is_local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)


def decode_lines(
    records: Sequence[BadRecord], schema: pa.Schema, options: LandingTableOptions, on_bad_record: OnBadRecord
) -> Iterator[pa.RecordBatch]:
    """The rows of lines that were kept, as `TableLog.decode` gives them."""
    lines: list[BadRecord] = []
    for record in records:
        if not options.format.is_text or record.value is None:
            on_bad_record(replace(record, error="its bytes were not kept; land what was mended in a new file"))
        elif b"\n" in record.value:
            on_bad_record(replace(record, error="it is more than one line"))
        else:
            lines.append(record)
    if not lines:
        return
    parser: JsonLines | CsvLines = JsonLines(schema, options.extra_columns)
    if options.format is FileFormat.CSV:
        parser = CsvLines(schema.names, schema, options.delimiter)
    block = b"".join((record.value or b"") + b"\n" for record in lines)
    tables = parse_lines(block, 0, parser, lambda at, _, error: on_bad_record(replace(lines[at], error=error)))
    for table in tables:
        for batch in table.to_batches(BATCH_ROWS):
            yield _conformed(batch, schema)


def csv_header(block: bytes, options: LandingTableOptions, schema: pa.Schema | None) -> tuple[list[str], int]:
    """The names of a CSV file's columns, and how many bytes tell them. Raises `Unreadable`."""
    if not options.header:
        return list(schema.names if schema is not None else options.columns), 0
    skipped = 0
    for line in block.splitlines(keepends=True):
        skipped += len(line)
        if line.strip():
            try:
                return header_of(line, options.delimiter), skipped
            except ValueError as error:
                raise Unreadable(str(error)) from error
    raise Unreadable("it has no header")


def schema_of(filesystem: fs.FileSystem, path: str, options: LandingTableOptions) -> pa.Schema:
    """The columns of a file. Raises `Unreadable`."""
    match options.format:
        case FileFormat.PARQUET:
            with filesystem.open_input_file(path) as file, _unreadable():
                return pq.read_schema(file).remove_metadata()
        case FileFormat.ARROW:
            with filesystem.open_input_file(path) as file, _unreadable():
                is_file = file.read(len(_ARROW_FILE)) == _ARROW_FILE
                file.seek(0)
                return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file).schema.remove_metadata()
        case FileFormat.AVRO:
            fastavro = import_fastavro()
            with filesystem.open_input_stream(path, compression=None) as file, _unreadable():
                return arrow_schema(fastavro.parse_schema(fastavro.reader(file).writer_schema), where=path)
        case _:
            with filesystem.open_input_stream(path, compression="detect") as file:
                return _inferred(next(_blocks(file, True), b""), options)


def check_types(schema: pa.Schema, options: LandingTableOptions, *, origin: str) -> None:
    """Raises `ConfigError` for columns whose types the format can't hold."""
    if not options.format.is_text:
        return

    def parser_of(one: pa.Schema) -> tuple[Any, bytes]:
        if options.format is FileFormat.JSON:
            return JsonLines(one, options.extra_columns), b"{}\n"
        return CsvLines([*one.names, "_"], one, options.delimiter), f"{options.delimiter}\n".encode()

    unknown = unreadable_columns(parser_of, schema)
    if unknown:
        kinds = ", ".join(f"{name} ({schema.field(name).type})" for name in unknown)
        raise ConfigError(
            f"columns of these types can't be read from {options.format.value}: {kinds}",
            where=origin,
            fix="Choose other types, and cast them after they were read.",
        )


def _inferred(block: bytes, options: LandingTableOptions) -> pa.Schema:
    parser: JsonLines | CsvLines
    skipped = 0
    if options.format is FileFormat.JSON:
        parser = JsonLines(None, options.extra_columns)
    else:
        names, skipped = csv_header(block, options, None)
        parser = CsvLines(names, None, options.delimiter)

    def refuse(line: int, _: bytes, why: str) -> None:
        raise Unreadable(f"line {line}: {why}")

    tables = list(parse_lines(block[skipped:], 1, parser, refuse))
    if not tables:
        raise Unreadable("it has no records")
    fields = [f.with_type(pa.string()) if f.type == pa.null() else f for f in tables[0].schema]
    return pa.schema(fields)


def _conformed(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    names = [name for name in wanted.names if name in batch.schema.names]
    return conform(batch.select(names), wanted) if names else null_rows(batch.num_rows, wanted)


def _blocks(file: Any, is_local: bool) -> Iterator[bytes]:
    with _unreadable(is_local):
        yield from read_blocks(file)


@contextmanager
def _unreadable(is_local: bool = True) -> Iterator[None]:
    """What libraries say of a damaged file. Arrow says some of it as an ``OSError``, without a number; on an object
    store that may as well be the network, and is left as it is."""
    try:
        yield
    except OSError as error:
        if error.errno is not None or not is_local:
            raise
        raise Unreadable(f"it is damaged: {error}") from error
    except IncompatibleData as error:
        raise Unreadable(str(error)) from error
    except _DAMAGED as error:
        raise Unreadable(f"it is damaged, or of another format: {error or type(error).__name__}") from error
