"""Vortex: files of the library ``vortex-data``, an extra of this package. Experimental, and never the default.

Each version of the library knows encodings that older ones can't read, so files keep to one of its editions.
"""

from __future__ import annotations

import queue
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.kit import conform
from laketier.kit.nested import children
from laketier.kit.rolling import OpenFile
from laketier.spi import ConfigError, CorruptTable, TableError, UnsupportedType
from laketier_localfile.file_formats.interface import Described, Wanted
from laketier_localfile.file_formats.plain_types import files_of
from laketier_localfile.file_formats.whole import HashedSink, RunningStats, WholeFileFormat, pieces
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.types import check_types

if TYPE_CHECKING:
    from types import ModuleType

EDITION = "core2025.10.0"
"""Vortex 0.73 and later read its files. It has no map."""

_BATCH_ROWS = 131_072
_BATCH_BYTES = 32 << 20
_WAITING = 2
"""Batches that wait for the library's writer."""
_COPY = 1 << 20

_REFUSED: list[tuple[Callable[[pa.DataType], bool], str]] = [
    (pt.is_map, "its edition has no map: use a list of structs"),
    (pt.is_fixed_size_binary, "it has no binary of a fixed size: use binary"),
]


class Vortex(WholeFileFormat):
    """Files that carry their schema, without Arrow's spellings of it: a reader has to say which it wants."""

    name = "vortex"
    suffixes = (".vortex",)

    def suffix(self, options: LocalFileOptions) -> str:
        return ".vortex"

    def check_types(self, schema: pa.Schema) -> None:
        check_types(schema)
        for column in schema:
            _check(column.name, column.type)
        _library()

    def opener(self, options: LocalFileOptions) -> OpenFile:
        _library()
        return partial(GrowingVortexFile)

    def read(self, file: pa.NativeFile, path: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        vortex = _library()
        try:
            opened = vortex.open_readable(file)
            there = set(opened.dtype.to_arrow_schema().names)
            present = pa.schema([field for field in wanted.written if field.name in there])
            batches = opened.to_arrow(present.names, schema=present, limit=wanted.rows, batch_size=_BATCH_ROWS)
            for batch in batches:
                for piece in pieces(pa.Table.from_batches([batch]), _BATCH_ROWS, _BATCH_BYTES):
                    for each in piece.to_batches():
                        yield conform(each, wanted.schema)
        except (RuntimeError, ValueError) as error:
            raise CorruptTable("Vortex can't read the file", where=path, why=_first_line(error)) from error

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
    """A `GrowingFile`. The library pulls what it writes, into a file with a name: so a thread of its own has it, its
    file is a temporary one, and the bytes are copied when the file is whole."""

    def __init__(self, stream: pa.NativeFile, schema: pa.Schema) -> None:
        self._sink = HashedSink(stream)
        self._stats = RunningStats(schema)
        self._schema = schema
        self._folder = tempfile.TemporaryDirectory(prefix="laketier-vortex-")
        self._path = Path(self._folder.name, "part.vortex")
        self._waiting: queue.Queue[pa.RecordBatch | None] = queue.Queue(_WAITING)
        self._failed: BaseException | None = None
        self._given_up = False
        self._thread = threading.Thread(target=self._run, name="laketier-vortex", daemon=True)
        self._thread.start()

    def write(self, table: pa.Table) -> None:
        self._stats.add(table)
        for piece in pieces(table, _BATCH_ROWS, _BATCH_BYTES):
            for batch in piece.combine_chunks().to_batches():
                self._put(batch)

    def tell(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def close(self) -> Described:
        self._put(None)
        self._thread.join()
        self._raise_failure()
        with self._path.open("rb") as file:
            while chunk := file.read(_COPY):
                self._sink.write(chunk)
        self._folder.cleanup()
        return Described(self._sink.digest(), self._stats.result())

    def abandon(self) -> None:
        self._given_up = True
        while self._thread.is_alive():
            try:
                self._waiting.put(None, timeout=0.1)
            except queue.Full:
                continue
            self._thread.join()
        self._folder.cleanup()

    def _run(self) -> None:
        try:
            options = _library().io.VortexWriteOptions.default().with_edition(EDITION)
            options.write(pa.RecordBatchReader.from_batches(self._schema, self._batches()), str(self._path))
        except BaseException as error:  # noqa: BLE001 - a panic is one, too; the writer's thread raises it
            self._failed = error

    def _batches(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._waiting.get()) is not None and not self._given_up:
            yield batch

    def _put(self, batch: pa.RecordBatch | None) -> None:
        while self._thread.is_alive():
            try:
                self._waiting.put(batch, timeout=0.1)
            except queue.Full:
                continue
            return
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failed is not None:
            raise TableError(
                "Vortex could not write the file", where=str(self._path), why=_first_line(self._failed)
            ) from self._failed


def _library() -> ModuleType:
    try:
        import vortex
    except ImportError as error:
        raise ConfigError(
            "files of Vortex need the library vortex-data, and it is not installed",
            why=str(error),
            fix='Install it where the job runs and on all executors: `pip install "laketier-localfile[vortex]"`.',
        ) from error
    module: Any = vortex
    return module


def _check(column: str, kind: pa.DataType) -> None:
    for test, why in _REFUSED:
        if test(kind):
            raise UnsupportedType(f"column {column!r} of type {kind} can't be kept in Vortex files: {why}")
    for name, child in children(kind):
        _check(f"{column}.{name}", child.type)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
