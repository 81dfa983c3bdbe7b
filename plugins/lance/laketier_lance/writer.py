"""Staging rows as Lance data files, on executors.

`lance.fragment.write_fragments(mode="append")` would do too, but it opens the dataset on every executor, and makes a
new one without a word where it is gone. So data files are written by `lance.file.LanceFileWriter`, and the fragment
is described with the field ids that came with the factory: no table metadata is read, the files belong to exactly
the schema that the result's fingerprint names, and their names carry the attempt.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laketier.kit import confined, conform, failpoint
from laketier.kit.durable import fsync_directory, fsync_file
from laketier.kit.staged import remove
from laketier.spi import (
    LakeWriter,
    OutsideTable,
    StagedFile,
    StorageError,
    TableError,
    TableInfo,
    UnstorableRows,
    WriteResult,
)
from laketier_lance.dataset import lance_errors, reason
from laketier_lance.lance_schema import without_field_ids
from laketier_lance.location import local_folder, local_path, refuse_links
from laketier_lance.names import DATA
from laketier_lance.options import LanceOptions
from laketier_lance.sessions import file_session

if TYPE_CHECKING:
    from lance.file import LanceFileSession, LanceFileWriter

log = logging.getLogger(__name__)

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
        except lance_errors() as error:
            raise self._failed(error) from error
        self._file_rows += batch.num_rows
        self._file_bytes += batch.nbytes
        failpoint("write.mid_file")

    def _open_file(self) -> LanceFileWriter:
        options = self._target.options
        if self._session is None:
            refuse_links(self._target.table.location)
            self._session = file_session(self._target.table.location, options.storage_options())
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
        except lance_errors() as error:
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
            fsync_directory(local)  # the folder of data files may be new

    def _describe(self, name: str, rows: int, size: int) -> StagedFile:
        target = self._target
        fragment = described(name, rows, size, target.columns, target.file_version)
        return StagedFile(f"{DATA}/{name}", rows, size, payload={FRAGMENT: json.dumps(fragment)})

    def _failed(self, error: BaseException) -> Exception:
        text = reason(error)
        where = self._target.table.location
        if "does not encode struct validity" in text:
            return UnstorableRows(
                "a struct is null",
                where=where,
                why=text,
                fix="Write to a table with lake.lance.data-storage-version 2.1 or newer.",
            )
        what = "a data file could not be written"
        if "LanceError(IO)" not in text:
            return TableError(what, where=where, why=text)
        return StorageError(
            what,
            where=where,
            why=text,
            fix="Mend what the storage names, as its space. Nothing of this round was published; it can be run again.",
        )


def described(name: str, rows: int, size: int, columns: Sequence[int], file_version: str) -> dict[str, Any]:
    """The fragment of one data file, as Lance writes it in JSON. It follows from the rest of the result, so whoever
    publishes it can tell whether it is the writer's."""
    from lance.fragment import DataFile, FragmentMetadata

    major, minor = (int(part) for part in file_version.split("."))
    file = DataFile(name, list(columns), list(range(len(columns))), major, minor, size)
    described: dict[str, Any] = FragmentMetadata(id=0, files=[file], physical_rows=rows).to_json()
    return described


def delete_files(location: str, options: LanceOptions, paths: Sequence[str]) -> set[str]:
    """Delete files of a dataset and return those that are gone. Best effort: what was gone is fine, other failures, and
    paths that lead out of the dataset, are logged."""
    folder = local_folder(location)
    if folder is not None:
        return remove(folder, paths)
    if not paths:
        return set()
    session = file_session(location, options.storage_options())
    gone = set()
    for path in paths:
        try:
            session.delete_file(confined(path, where=location))
        except lance_errors(OutsideTable) as error:
            if "not found" not in str(error).lower():
                log.warning("%s: %a could not be deleted: %s", location, path, reason(error))
                continue
        gone.add(path)
    return gone
