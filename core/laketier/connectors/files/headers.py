"""The columns that one file tells, by its header or by its lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from laketier.codecs.arrow_ipc import ipc_schema
from laketier.codecs.avro_files import AvroFile
from laketier.codecs.csv_values import refuse_values
from laketier.codecs.decoding import BadValue
from laketier.codecs.inference import Given, inferred_csv, inferred_json
from laketier.codecs.lines import BLOCK_BYTES, read_blocks
from laketier.connectors.files.folder import Folder
from laketier.connectors.files.options import FileFormat, LandingTableOptions
from laketier.connectors.files.readers import UnreadableFile, bounded_stream, csv_header, refuse_twice, unreadable
from laketier.connectors.files.watched import Storage, WatchedFile
from laketier.kit.parquet_reader import open_parquet
from laketier.tables.inference import SchemaSet, filled
from laketier.tables.promotion import Spelling


def schema_of(folder: Folder, path: str, options: LandingTableOptions) -> pa.Schema:
    """The columns of a file. Raises `UnreadableFile`, and ``OSError`` for what is the storage's fault."""
    found = file_schema(folder, path, options)
    if found is None:
        raise UnreadableFile("it has no records")
    refuse_twice(found.names)
    return pa.schema([filled(column) for column in found]) if options.format.is_text else found


def file_schema(
    folder: Folder,
    path: str,
    options: LandingTableOptions,
    *,
    whole: bool = False,
    given: Given | None = None,
    on_cut: Callable[[], None] | None = None,
) -> pa.Schema | None:
    """What a file says of its columns, to be joined with what others say: a column of text without a value has the type
    null. None for text without records. ``whole``: all of a text, not its first block. ``given``: types that were
    chosen, which text is read as. ``on_cut`` is called where a text goes on behind what was looked at. Raises as
    `schema_of`."""
    storage = None if folder.is_local else Storage()
    with folder.opened(path) as (found, entry), unreadable(storage):
        file = found if storage is None else WatchedFile(found, storage)
        match options.format:
            case FileFormat.PARQUET:
                return open_parquet(file).schema_arrow.remove_metadata()
            case FileFormat.ARROW:
                return ipc_schema(file, entry.size).remove_metadata()
            case FileFormat.AVRO:
                return AvroFile.open(file, entry.size, where=path).schema
            case _:
                stream = bounded_stream(file, path, entry.size, options)
                return _schema_of_text(stream, path, options, None if whole else on_cut or _nobody, given)


def _nobody() -> None:
    """Who needs not know that a text was cut."""


class _Counted:
    """A stream that knows how much of it was read."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.bytes = 0

    def read(self, size: int) -> bytes:
        data: bytes = self._stream.read(size)
        self.bytes += len(data)
        return data


def _schema_of_text(
    stream: Any, path: str, options: LandingTableOptions, on_cut: Callable[[], None] | None, given: Given | None
) -> pa.Schema | None:
    """See `file_schema`. ``on_cut``: None to look at all."""
    is_csv = options.format is FileFormat.CSV
    found = SchemaSet(Spelling.CSV if is_csv else Spelling.JSON)
    names: list[str] | None = None
    counted = _Counted(stream)
    for block in read_blocks(counted, longest=options.max_record_bytes, to_its_end=False):
        if block.long:
            raise BadValue(
                f"its line {block.first:,} has more bytes than max-record-bytes = {options.max_record_bytes:,} allows"
            )
        skipped = 0
        if is_csv and names is None:
            names, skipped = csv_header(block.data, options, None)
            if options.header:
                refuse_values(names)
        data = block.data[skipped:]
        first = block.first + block.data.count(b"\n", 0, skipped)
        parts = (
            inferred_csv(data, first, names or [], options.delimiter, given)
            if is_csv
            else inferred_json(data, first, given)
        )
        for place, schema in parts:
            found.add(schema, path, place)
        if on_cut is not None and (found.files or not is_csv) and counted.bytes >= BLOCK_BYTES and stream.read(1):
            on_cut()
            break
    return found.joined() if found.files else None
