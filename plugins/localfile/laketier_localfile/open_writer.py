"""The writing half of files that stay open across epochs, in a process that lives over epochs.

One writer serves epoch after epoch. It waits in the engine's slot between them, and `OpenFileWriter.goes_on` compares
what it has with what the table recorded. Where the two differ, because a commit failed, or its outcome is unknown, or
another process went on, it gives all of its files up, and the next commit finishes them. It never cuts a file: one
that was recorded further, by a commit that this process does not know of, would lose rows.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.kit.data_file import ClosedFile, OpenedFile, OpenFile
from laketier.kit.durable import fsync_directory, fsync_file
from laketier.kit.failpoints import failpoint
from laketier.kit.looks import is_absent
from laketier.kit.manifests import Growth, ManifestLog, growth_text
from laketier.kit.manifests.growth import GROWTH
from laketier.spi import (
    BucketAssigner,
    ConfigError,
    LaketierError,
    OpenFiles,
    Overtaken,
    StagedFile,
    TableInfo,
    WriteResult,
    WriterInitContext,
)
from laketier_localfile.claims import claim
from laketier_localfile.file_formats.interface import AppendableFile, Described
from laketier_localfile.file_formats.known import of_table
from laketier_localfile.file_formats.whole import DIGITS
from laketier_localfile.layout import IN_PROGRESS, LAYOUT, staged_path
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.stretch import Stretch
from laketier_localfile.writer import LocalFileWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Length:
    """How long a file was at the end of an epoch, and the digest of all of it."""

    rows: int
    bytes: int
    digest: str
    head: int


_NEW = _Length(0, 0, "", 0)


class OpenFileWriter(LocalFileWriter, OpenFiles):
    """Stages the rows of one epoch after another, each with `goes_on` and `complete`. One thread at a time."""

    def __init__(
        self,
        table: TableInfo,
        options: LocalFileOptions,
        assigner: BucketAssigner | None,
        context: WriterInitContext,
    ) -> None:
        self._location = Path(table.location)
        self._options = options
        self._lengths: dict[str, _Length] = {}
        self._begun: list[str] = []
        self._is_over = False
        super().__init__(table, options, assigner, context)

    def _opener(self, options: LocalFileOptions) -> OpenFile:
        begin = super()._opener(options)

        def begun(stream: pa.NativeFile, schema: pa.Schema) -> _MarkedFile:
            marked = _MarkedStream(stream)
            return _MarkedFile(begin(marked, schema), marked)  # type: ignore[arg-type]

        return begun

    def goes_on(self, table: TableInfo, options: LocalFileOptions, context: WriterInitContext) -> bool:
        """Begin another epoch. False where its files are not what the table has open: it is closed then."""
        same = (
            not self._is_over
            and (table.table_uuid, table.location) == (self._table.table_uuid, self._table.location)
            and options == self._options
            and self._is_as_recorded()
        )
        if not same:
            self.close()
            return False
        self._table, self._context = table, context
        self._begun = []
        return True

    def _is_as_recorded(self) -> bool:
        try:
            head, _ = ManifestLog.open(self._location, LAYOUT).head()
        except (LaketierError, OSError) as error:
            log.info("%s: the files left open are given up: %s", self._location, error)
            return False
        known = {str(self._location / staged_path(entry.path)): entry for entry in head.open_files}
        for path, length in self._lengths.items():
            entry = known.get(path)
            if (
                entry is None
                or (entry.rows, entry.bytes, entry.details["digest"]) != (length.rows, length.bytes, length.digest)
                or entry.schema != head.metadata_at
            ):
                log.info("%s: %s is not open as this process left it, and is given up", self._location, path)
                return False
        return True

    def complete(self) -> WriteResult:
        slot = self._context.open_files
        if slot is None or slot.ending:
            closed, opened = self._writer.close(), list[OpenedFile]()
        else:
            closed, opened = self._writer.checkpoint()
        self._begun = [path for path in self._made if path not in self._lengths]
        failpoint("open.after_append")
        files = [self._ended(file) for file in closed]
        lengths = {}
        for each in opened:
            staged, lengths[each.path] = self._left_open(each)
            files.append(staged)
        self._lengths = lengths
        if self._begun:
            fsync_directory(self._location / IN_PROGRESS)
        self._made = {path: self._made[path] for path in self._lengths}
        failpoint("stage.after_fsync")
        result = WriteResult.of(self._table, self._context.attempt, tuple(files))
        if opened and slot is not None:
            slot.leave(self)
        else:
            self._is_over = True
        return result

    def abort(self) -> None:
        begun = {*self._begun, *self._writer.paths}
        self.close()
        for path in begun:
            Path(path).unlink(missing_ok=True)

    @property
    def is_due(self) -> bool:
        """Also where a file is gone from where it is written, as another process has finished it."""
        return self._writer.is_due or any(map(is_absent, self._lengths))

    def close(self) -> None:
        self._is_over = True
        with suppress(OSError):  # nothing of it is needed any more
            self._writer.abandon()

    def _closed(self, path: str) -> None:
        with self._still_ours(path):
            super()._closed(path)

    @contextmanager
    def _still_ours(self, path: str) -> Iterator[None]:
        """Raise `Overtaken` where the body does not find a file that earlier epochs wrote into."""
        try:
            yield
        except FileNotFoundError as error:
            if path not in self._lengths:
                raise
            raise Overtaken(
                "an open file is gone from where it was written",
                where=path,
                why="another process took the table over, and finished the file",
                fix="Run the round again: it begins another file.",
            ) from error

    def _ended(self, file: ClosedFile) -> StagedFile:
        """A file that got its end in this epoch. One that no commit knows yet is as any other file."""
        before = self._lengths.get(file.path, _NEW)
        ended: _Ended = file.footer
        if before is _NEW:
            return self._staged(replace(file, footer=ended.described))
        growth = self._growth(before, ended.upto, ended.mark, is_open=False)
        with self._still_ours(file.path), pa.OSFile(file.path) as data:
            seal = self._format.seal(data, file.bytes)
        return self._grown(file, before, growth, ended.described, seal)

    def _left_open(self, file: OpenedFile) -> tuple[StagedFile, _Length]:
        before = self._lengths.get(file.path, _NEW)
        assert isinstance(file.file, _MarkedFile)
        mark, described = file.file.mark(), file.file.so_far()
        growth = self._growth(before, file.bytes, mark, is_open=True, head=file.file.head)
        with self._still_ours(file.path):
            if file.bytes != before.bytes:
                fsync_file(file.path)
            with pa.OSFile(file.path) as data:
                seal = self._format.seal(Stretch(0, file.bytes).bytes_of(data), file.bytes)
        staged = self._grown(file, before, growth, described, seal)
        return staged, _Length(file.rows, file.bytes, described.digest, growth.head)

    def _growth(self, before: _Length, upto: int, mark: str, *, is_open: bool, head: int | None = None) -> Growth:
        return Growth(
            rows=before.rows,
            bytes=before.bytes,
            upto=upto,
            head=before.head if head is None else head,
            digest=mark,
            is_open=is_open,
            suffix=self._format.suffix_bytes if is_open else b"",
        )

    def _grown(
        self, file: ClosedFile | OpenedFile, before: _Length, growth: Growth, described: Described, seal: str
    ) -> StagedFile:
        partition, bucket = self._made[file.path]
        return StagedFile(
            path=f"{IN_PROGRESS}/{Path(file.path).name}",
            rows=file.rows - before.rows,
            bytes=file.bytes - before.bytes,
            partition=partition,
            bucket=bucket,
            payload={**claim(self._format.name, described, seal), GROWTH: growth_text(growth)},
        )


def open_writer(
    table: TableInfo, options: LocalFileOptions, assigner: BucketAssigner | None, context: WriterInitContext
) -> OpenFileWriter:
    """The writer of the epoch before, where it can go on; else a new one. ``context`` has a slot."""
    assert context.open_files is not None
    left = context.open_files.take()
    if isinstance(left, OpenFileWriter) and left.goes_on(table, options, context):
        return left
    if left is not None:
        left.close()
    return OpenFileWriter(table, options, assigner, context)


def check_appendable(table: TableInfo, options: LocalFileOptions) -> None:
    """Raise `ConfigError` where ``open-files`` can't have an effect. Driver."""
    of_table(table.descriptor.properties, where=str(table.path)).check_appendable(options)
    if table.descriptor.primary_key:
        raise ConfigError(
            "lake.localfile.open-files is true, and the table has a primary key",
            where=str(table.path),
            why="its rounds write whole files again, so none can stay open",
            fix="Leave the option out.",
        )


@dataclass(frozen=True)
class _Ended:
    """The end of a file: ``mark`` is the digest of what came since the last one, up to ``upto``."""

    described: Described
    mark: str
    upto: int


class _MarkedStream:
    """Passes bytes on, and digests those since the last mark."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    def write(self, data: Any) -> None:
        self._hash.update(data)
        self._stream.write(data)

    def tell(self) -> int:
        return int(self._stream.tell())

    def mark(self) -> str:
        digest, self._hash = self._hash.hexdigest()[:DIGITS], hashlib.sha256()
        return digest


class _MarkedFile:
    """A `GrowingFile` that tells what came to it since the last epoch."""

    def __init__(self, file: AppendableFile, stream: _MarkedStream) -> None:
        self._file = file
        self._stream = stream

    @property
    def head(self) -> int:
        return self._file.head

    def write(self, table: pa.Table) -> None:
        self._file.write(table)

    def tell(self) -> int:
        return self._file.tell()

    def so_far(self) -> Described:
        return self._file.so_far()

    def mark(self) -> str:
        return self._stream.mark()

    def close(self) -> _Ended:
        upto, mark = self._file.tell(), self._stream.mark()
        return _Ended(self._file.close(), mark, upto)

    def abandon(self) -> None:
        self._file.abandon()
