"""Arrow's own files (the IPC file format, Feather version 2): memory as it is, the fastest to write and to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa

from laketier.kit import conform
from laketier.kit.rolling import OpenFile
from laketier_localfile.file_formats.interface import Described, Wanted
from laketier_localfile.file_formats.plain_types import files_of
from laketier_localfile.file_formats.whole import HashedSink, RunningStats, WholeFileFormat, pieces
from laketier_localfile.options import ArrowCompression, LocalFileOptions
from laketier_localfile.types import check_types


class ArrowIpc(WholeFileFormat):
    """Files that carry their schema. They hold the same types as Parquet files: more would be read by Arrow alone."""

    name = "arrow"
    suffixes = (".arrow",)

    def suffix(self, options: LocalFileOptions) -> str:
        return ".arrow"

    def check_types(self, schema: pa.Schema) -> None:
        check_types(schema)

    def opener(self, options: LocalFileOptions) -> OpenFile:
        return partial(GrowingArrowFile, options=options)

    def read(self, file: pa.NativeFile, path: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        names = pa.ipc.open_file(file).schema.names
        present = [name for name in wanted.schema.names if name in names]
        places = sorted(names.index(name) for name in present)
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=places))
        left = wanted.rows
        for number in range(reader.num_record_batches):
            if left <= 0:
                return
            batch = reader.get_batch(number).slice(0, left)
            left -= batch.num_rows
            yield conform(batch.select(present), wanted.schema)

    def open_with(self, location: str, schema: pa.Schema) -> Mapping[str, str]:
        files = files_of(location, self.suffixes)
        table = f"pyarrow.concat_tables([pyarrow.ipc.open_file(file).read_all() for file in {files}]"
        return {
            "DuckDB": f"import duckdb, glob, pyarrow; duckdb.from_arrow({table}, promote_options='permissive'))",
            "Polars": f"import glob, polars; polars.concat([polars.read_ipc(file) for file in {files}], "
            "how='diagonal_relaxed')",
        }


class GrowingArrowFile:
    """A `GrowingFile`. A record batch has at most 131,072 rows and about 32 MiB, so readers need not take more."""

    def __init__(self, stream: pa.NativeFile, schema: pa.Schema, *, options: LocalFileOptions) -> None:
        self._sink = HashedSink(stream)
        self._stats = RunningStats(schema)
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

    def abandon(self) -> None:
        """Arrow's writer writes a footer when it is closed, and only then."""
