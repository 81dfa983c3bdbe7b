"""Arrow's own files (the IPC file format, Feather version 2): memory as it is, the fastest to write and to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa

from laketier.codecs.arrow_footer import MAGIC
from laketier.codecs.arrow_ipc import ipc_file, ipc_schema
from laketier.codecs.decoding import BadValue
from laketier.codecs.inference import Given
from laketier.kit import conform
from laketier.kit.data_file import OpenFile
from laketier.kit.parquet import check_level
from laketier.tables.evolution import logical_schema
from laketier.tables.promotion import as_promoted
from laketier_localfile.file_formats.interface import Described, Told, Wanted
from laketier_localfile.file_formats.plain_types import files_of
from laketier_localfile.file_formats.whole import HashedSink, RunningStats, WholeFileFormat, measured, pieces
from laketier_localfile.names import ARROW_ENDS
from laketier_localfile.options import ArrowCompression, LocalFileOptions
from laketier_localfile.types import check_types


class ArrowIpc(WholeFileFormat):
    """Files that carry their schema. They hold the same types as Parquet files: more would be read by Arrow alone."""

    name = "arrow"
    suffixes = (".arrow",)
    lying_suffixes = ARROW_ENDS

    def suffix(self, options: LocalFileOptions) -> str:
        return ".arrow"

    def check_types(self, schema: pa.Schema) -> None:
        check_types(schema)

    def check_options(self, options: LocalFileOptions, schema: pa.Schema) -> None:
        if options.arrow_compression is ArrowCompression.ZSTD:
            check_level(options.arrow_compression.value, options.compression_level)

    def check_appendable(self, options: LocalFileOptions) -> None:
        """Each that it makes: without its footer, a file is a magic word and a stream."""

    suffix_bytes = None

    def read_open(self, file: pa.NativeFile, path: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        file.seek(len(_MAGIC))
        left = wanted.rows
        for batch in pa.ipc.open_stream(file):
            if left <= 0:
                return
            present = [name for name in wanted.schema.names if name in batch.schema.names]
            piece = batch.select(present).slice(0, left)
            left -= piece.num_rows
            yield conform(piece, wanted.schema)

    def end(
        self, file: pa.NativeFile, stream: pa.NativeFile, schema: pa.Schema, options: LocalFileOptions
    ) -> Described | None:
        file.seek(len(_MAGIC))
        whole = GrowingArrowFile(stream, schema, options=options)
        for batch in pa.ipc.open_stream(file):
            whole.write(pa.Table.from_batches([batch]))
        return whole.close()

    def opener(self, options: LocalFileOptions) -> OpenFile:
        return partial(GrowingArrowFile, options=options)

    def read(self, file: pa.NativeFile, path: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        left = wanted.rows
        for whole in _batches(file, wanted.schema):
            if left <= 0:
                return
            batch = whole.slice(0, left)
            left -= batch.num_rows
            yield conform(batch, wanted.schema)

    def tell(self, file: pa.NativeFile, path: str, size: int, *, own: bool, given: Given) -> Told:
        _refuse_others(file)
        file.seek(0)
        there = ipc_schema(file, size)
        _refuse_other_footer(file, there)
        schema = logical_schema(there.remove_metadata())
        file.seek(0)
        return Told(schema, measured(file, size, schema, lambda: _checked_rows(file, size, schema)))

    def lying_rows(self, file: pa.NativeFile, path: str, size: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The digest is that of the file that was looked at, message by message, when it was adopted."""
        for batch in _batches(file, schema):
            for piece in pieces(pa.Table.from_batches([batch])):
                yield from piece.to_batches()

    def open_with(self, location: str, schema: pa.Schema) -> Mapping[str, str]:
        files = files_of(location, self.lying_suffixes)
        table = f"pyarrow.concat_tables([pyarrow.ipc.open_file(file).read_all() for file in {files}]"
        return {
            "DuckDB": f"import duckdb, glob, pyarrow; duckdb.from_arrow({table}, promote_options='permissive'))",
            "Polars": f"import glob, polars; polars.concat([polars.read_ipc(glob.escape(file)) for file in {files}], "
            "how='diagonal_relaxed')",
        }


_MAGIC = b"ARROW1\0\0"


class GrowingArrowFile:
    """A `GrowingFile`. A record batch has at most 131,072 rows and about 32 MiB, so readers need not take more."""

    def __init__(self, stream: pa.NativeFile, schema: pa.Schema, *, options: LocalFileOptions) -> None:
        self._sink = HashedSink(stream)
        self._stats = RunningStats(schema)
        self._head = len(_MAGIC) + len(schema.serialize())
        codec = None
        if options.arrow_compression is not ArrowCompression.NONE:
            # lz4 has no levels here.
            level = options.compression_level if options.arrow_compression is ArrowCompression.ZSTD else None
            codec = pa.Codec(options.arrow_compression.value, level)
        self._writer = pa.ipc.new_file(
            pa.PythonFile(self._sink, "w"), schema, options=pa.ipc.IpcWriteOptions(compression=codec)
        )

    def write(self, table: pa.Table) -> None:
        self._stats.add(table)
        for piece in pieces(table):
            self._writer.write_table(piece.combine_chunks())

    def tell(self) -> int:
        return self._sink.tell()

    def close(self) -> Described:
        self._writer.close()
        return Described(self._sink.digest(), self._stats.result())

    @property
    def head(self) -> int:
        """The magic word and the schema, which Arrow writes with the first batch."""
        return self._head

    def so_far(self) -> Described:
        """See `laketier_localfile.file_formats.interface.AppendableFile`."""
        return Described(self._sink.digest(), self._stats.result())

    def abandon(self) -> None:
        """Arrow's writer writes a footer when it is closed, and only then."""


def _batches(file: pa.NativeFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """As they are in the file: those columns of ``schema`` that it has."""
    names = pa.ipc.open_file(file).schema.names
    present = [name for name in schema.names if name in names]
    places = sorted(names.index(name) for name in present)
    reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=places))
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number).select(present)


def _checked_rows(file: pa.NativeFile, size: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    file.seek(0)
    for batch in ipc_file(file, size):
        yield as_promoted(batch, schema)


def _refuse_other_footer(file: pa.NativeFile, schema: pa.Schema) -> None:
    """Readers of files go by the footer, and what is checked here is the stream before it."""
    file.seek(0)
    try:
        told = pa.ipc.open_file(file).schema
    except OSError as error:
        if error.errno is not None:
            raise
        raise BadValue(f"its footer is damaged: {error}") from None
    if not told.equals(schema):
        raise BadValue("its footer tells of other columns than it has")


def _refuse_others(file: pa.NativeFile) -> None:
    file.seek(0)
    start = file.read(len(MAGIC))
    if start == MAGIC:
        return
    if start[:4] == b"FEA1":
        raise BadValue("it is of the first version of Feather, which few readers know: write it again as an Arrow file")
    if start[:4] == b"\xff\xff\xff\xff":
        raise BadValue("it is an Arrow stream, and readers of files need a footer: write it again as an Arrow file")
    raise BadValue("it is no Arrow file")
