"""Vortex: files of the library ``vortex-data``, an extra of this package. Experimental, and never the default.

Each version of the library knows encodings that older ones can't read, so files keep to one of its editions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.codecs.inference import Given
from laketier.kit import conform
from laketier.kit.data_file import OpenFile
from laketier.kit.library_errors import errors_and_panics, refused_by_the_system
from laketier.kit.nested import children
from laketier.spi import ConfigError, CorruptTable, LaketierError, StorageError, TableError, UnsupportedType
from laketier.tables.evolution import logical_schema
from laketier.tables.promotion import as_promoted
from laketier_localfile.file_formats.interface import Described, Told, Wanted
from laketier_localfile.file_formats.plain_types import files_of
from laketier_localfile.file_formats.whole import (
    BATCH_ROWS,
    HashedSink,
    RunningStats,
    WholeFileFormat,
    measured,
    pieces,
)
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.types import check_types

if TYPE_CHECKING:
    from types import ModuleType

EDITION = "core2025.10.0"
"""Vortex 0.73 and later read its files."""

_COPY = 1 << 20

_REFUSED: list[tuple[Callable[[pa.DataType], bool], str]] = [
    (pt.is_map, "Use a list of structs with a key and a value."),
    (pt.is_fixed_size_binary, "Use binary."),
]


class Vortex(WholeFileFormat):
    """Files that carry their schema, without Arrow's spellings of it: a reader has to say which it wants."""

    name = "vortex"
    suffixes = (".vortex",)
    lying_suffixes = (".vortex",)
    most_bytes = 128 << 20

    def suffix(self, options: LocalFileOptions) -> str:
        return ".vortex"

    def check_types(self, schema: pa.Schema) -> None:
        check_types(schema)
        for column in schema:
            _check(column.name, column.type)
        _library()

    def opener(self, options: LocalFileOptions) -> OpenFile:
        _library()
        return GrowingVortexFile

    def read(self, file: pa.NativeFile, path: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        with _readable(path):
            opened = _library().open_readable(file)
            there = set(opened.dtype.to_arrow_schema().names)
            present = pa.schema([field for field in wanted.written if field.name in there])
            batches = opened.to_arrow(present.names, schema=present, limit=wanted.rows, batch_size=BATCH_ROWS)
            for batch in batches:
                for piece in pieces(pa.Table.from_batches([batch])):
                    for each in piece.to_batches():
                        yield conform(each, wanted.schema)

    def tell(self, file: pa.NativeFile, path: str, size: int, *, own: bool, given: Given) -> Told:
        with _readable(path):
            found = _library().open_readable(file)
            schema = logical_schema(found.dtype.to_arrow_schema().remove_metadata())
            rows = lambda: (as_promoted(each, schema) for each in _batches(found, schema.names))  # noqa: E731
            return Told(schema, measured(file, size, schema, rows))

    def lying_rows(self, file: pa.NativeFile, path: str, size: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with _readable(path):
            found = _library().open_readable(file)
            there = set(found.dtype.to_arrow_schema().names)
            present = [name for name in schema.names if name in there]
            if present:
                yield from _batches(found, present)

    def open_with(self, location: str, schema: pa.Schema) -> Mapping[str, str]:
        files = files_of(location, self.suffixes)
        table = f"pyarrow.concat_tables([vortex.open(file).to_arrow().read_all() for file in {files}]"
        return {
            "DuckDB": "import duckdb, glob, pyarrow, vortex; "
            f"duckdb.from_arrow({table}, promote_options='permissive'))",
            "Polars": "import glob, polars, vortex; "
            f"polars.concat([vortex.open(file).to_polars() for file in {files}], how='diagonal_relaxed').collect()",
        }


class GrowingVortexFile:
    """A `GrowingFile`. The library holds a file in memory until it is whole, and writes to a path. So rows wait in a
    temporary file, of which `close` makes one; its bytes are copied into the stream."""

    def __init__(self, stream: pa.NativeFile, schema: pa.Schema) -> None:
        self._sink = HashedSink(stream)
        self._stats = RunningStats(schema)
        self._folder = tempfile.TemporaryDirectory(prefix="laketier-vortex-")
        self._rows = Path(self._folder.name, "rows.arrow")
        self._rows_file = pa.OSFile(str(self._rows), "wb")
        # Without compression: it is their bytes in memory that count.
        self._waiting = pa.ipc.new_stream(self._rows_file, schema)

    def write(self, table: pa.Table) -> None:
        self._stats.add(table)
        for piece in pieces(table):
            self._waiting.write_table(piece.combine_chunks())

    def tell(self) -> int:
        return int(self._rows_file.tell())

    def close(self) -> Described:
        self._waiting.close()
        self._rows_file.close()
        whole = Path(self._folder.name, "part.vortex")
        options = _library().io.VortexWriteOptions.default().with_edition(EDITION)
        try:
            with pa.OSFile(str(self._rows)) as rows:
                options.write(pa.ipc.open_stream(rows), str(whole))
        except RuntimeError as error:
            raise TableError("Vortex could not write the file", where=str(whole), why=_first_line(error)) from error
        with whole.open("rb") as file:
            while chunk := file.read(_COPY):
                self._sink.write(chunk)
        self._folder.cleanup()
        return Described(self._sink.digest(), self._stats.result())

    def abandon(self) -> None:
        self._rows_file.close()
        self._folder.cleanup()


def _batches(found: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
    for batch in found.to_arrow(names, batch_size=BATCH_ROWS):
        for piece in pieces(pa.Table.from_batches([batch])):
            yield from piece.to_batches()


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except LaketierError:
        raise  # some of them are a ValueError, too
    except errors_and_panics(RuntimeError, ValueError) as error:
        if refused_by_the_system(error):
            raise StorageError("the file could not be looked at", where=path, why=_first_line(error)) from error
        raise CorruptTable("Vortex can't read the file", where=path, why=_first_line(error)) from error


def _library() -> ModuleType:
    try:
        import vortex
    except ImportError as error:
        raise ConfigError(
            "files of Vortex need the library vortex-data, and it is not installed",
            why=str(error),
            fix='Install it where the job runs and on all executors: `pip install "vortex-data>=0.93,<0.94"`. Or write '
            "files by another lake.localfile.file-format than vortex.",
        ) from error
    return vortex


def _check(column: str, kind: pa.DataType) -> None:
    for test, fix in _REFUSED:
        if test(kind):
            raise UnsupportedType(
                f"column {column!r} of type {kind} can't be kept in Vortex files", why="their edition has none", fix=fix
            )
    for name, child in children(kind):
        _check(f"{column}.{name}", child.type)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
