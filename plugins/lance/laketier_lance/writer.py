"""Staging rows as Lance data files, on executors.

`lance.fragment.write_fragments(mode="append")` would do too, but it opens the dataset on every executor, and makes a
new one without a word where it is gone. So data files are written by `lance.file.LanceFileWriter`, and the fragment
is described with the field ids that came with the factory: no table metadata is read, the files belong to exactly
the schema that the result's fingerprint names, and their names carry the attempt.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from laketier.spi import (
    IncompatibleData,
    LakeWriter,
    StagedFile,
    StorageError,
    TableError,
    TableInfo,
    WriteResult,
    conform,
    failpoint,
)
from laketier.spi.durable import fsync_directory, fsync_file
from laketier_lance.dataset import LANCE_ERRORS, reason
from laketier_lance.lance_schema import without_field_ids
from laketier_lance.location import UNLINKED, local_path
from laketier_lance.options import LanceOptions

if TYPE_CHECKING:
    from lance.file import LanceFileSession, LanceFileWriter

log = logging.getLogger(__name__)

DATA = "data"
FRAGMENT = "fragment"
"""The key of a staged file's payload that holds the fragment's description."""

_BUFFER_BYTES = 64 * 1024**2


@dataclass(frozen=True)
class LanceTarget:
    """All that a writer needs to know of a table: plain data, picklable. ``columns`` are the field ids in the order
    of a data file's columns."""

    table: TableInfo
    file_version: str
    columns: tuple[int, ...]
    options: LanceOptions


class LanceWriter(LakeWriter[WriteResult]):
    """Stages one task attempt. Holds at most ``buffer-rows`` rows or 64 MiB of collected batches, and
    ``data-cache-bytes`` inside Lance's encoder."""

    def __init__(self, target: LanceTarget, attempt: str) -> None:
        self._target = target
        self._attempt = attempt
        self._schema = without_field_ids(target.table.schema)
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._session: LanceFileSession | None = None
        self._file: LanceFileWriter | None = None
        self._file_rows = 0
        self._file_bytes = 0
        self._names: list[str] = []
        self._staged: list[StagedFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        fitted = conform(batch, self._schema)
        self._pending.append(fitted)
        self._pending_rows += fitted.num_rows
        self._pending_bytes += fitted.nbytes
        if self._pending_rows >= self._target.options.buffer_rows or self._pending_bytes >= _BUFFER_BYTES:
            self._flush()

    def complete(self) -> WriteResult:
        self._flush()
        self._close_file()
        return WriteResult.of(self._target.table, self._attempt, tuple(self._staged))

    def abort(self) -> None:
        # Dropping an open writer removes its temporary file, or aborts its multipart upload.
        self._file = None
        self._pending.clear()
        closed, self._staged = self._staged, []
        delete_files(self._target.table.location, self._target.options, [file.path for file in closed])

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._pending, self._schema).combine_chunks()
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0
        options = self._target.options
        for batch in table.to_batches():
            rest = batch
            while rest.num_rows:
                rows = self._rows_that_fit(rest)
                self._encode(rest.slice(0, rows))
                rest = rest.slice(rows)
                if self._file_rows >= options.max_rows_per_file or self._file_bytes >= options.max_bytes_per_file:
                    self._close_file()

    def _rows_that_fit(self, batch: pa.RecordBatch) -> int:
        options = self._target.options
        row_bytes = max(1, batch.nbytes // batch.num_rows)
        by_bytes = (options.max_bytes_per_file - self._file_bytes) // row_bytes
        return max(1, min(batch.num_rows, options.max_rows_per_file - self._file_rows, by_bytes))

    def _encode(self, batch: pa.RecordBatch) -> None:
        try:
            if self._file is None:
                self._file = self._open_file()
            self._file.write_batch(batch)
        except LANCE_ERRORS as error:
            raise self._failed(error) from error
        self._file_rows += batch.num_rows
        self._file_bytes += batch.nbytes
        failpoint("write.mid_file")

    def _open_file(self) -> LanceFileWriter:
        from lance.file import LanceFileSession

        options = self._target.options
        if self._session is None:
            self._session = LanceFileSession(self._target.table.location, options.storage_options() or None)
        name = f"{self._attempt}-{len(self._names):05d}.lance"
        self._names.append(name)
        return self._session.open_writer(
            f"{DATA}/{name}",
            schema=self._schema,
            data_cache_bytes=options.data_cache_bytes,
            version=self._target.file_version,
        )

    def _close_file(self) -> None:
        if self._file is None:
            return
        name = self._names[-1]
        try:
            self._file.close()
        except LANCE_ERRORS as error:
            raise self._failed(error) from error
        size = self._file.size_bytes
        if size is None:
            raise TableError("Lance closed a data file without telling its size", where=name)
        self._staged.append(self._describe(name, self._file_rows, size))
        self._file, self._file_rows, self._file_bytes = None, 0, 0
        failpoint("stage.after_close_before_fsync")
        local = local_path(self._target.table.location)
        if local is not None:
            fsync_file(local / DATA / name)
            fsync_directory(local / DATA)

    def _describe(self, name: str, rows: int, size: int) -> StagedFile:
        from lance.fragment import DataFile, FragmentMetadata

        target = self._target
        major, minor = (int(part) for part in target.file_version.split("."))
        columns = list(range(len(target.columns)))
        file = DataFile(name, list(target.columns), columns, major, minor, size)
        fragment = FragmentMetadata(id=0, files=[file], physical_rows=rows)
        return StagedFile(f"{DATA}/{name}", rows, size, payload={FRAGMENT: json.dumps(fragment.to_json())})

    def _failed(self, error: Exception) -> Exception:
        text = reason(error)
        where = self._target.table.location
        if "does not encode struct validity" in text:
            return IncompatibleData(
                "a struct is null",
                where=where,
                why=text,
                fix="Write to a table with lake.lance.data-storage-version 2.1 or newer.",
            )
        kind = StorageError if "LanceError(IO)" in text else TableError
        return kind("a data file could not be written", where=where, why=text)


def delete_files(location: str, options: LanceOptions, paths: list[str]) -> list[str]:
    """Delete files of a dataset and return those that are gone. Best effort: what was gone is fine, other failures are
    logged."""
    if not paths:
        return []
    from lance.file import LanceFileSession

    session = LanceFileSession(location, options.storage_options() or None)
    local = local_path(location)
    gone = []
    for path in paths:
        try:
            if local is not None and UNLINKED in path:
                (local / path).unlink(missing_ok=True)
            else:
                session.delete_file(path)
        except LANCE_ERRORS as error:
            if "not found" not in str(error).lower():
                log.warning("%s/%s could not be deleted: %s", location, path, reason(error))
                continue
        gone.append(path)
    return gone
