"""A writer of data files of any file format: bounded memory, large blocks, rolling files.

Large blocks matter most for speed (a Parquet row group of 10k rows doubles the cost), so small batches are collected
first. Memory is bounded over all partitions together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from laketier.kit.conform import conform
from laketier.kit.data_file import ClosedFile, GrowingFile, OpenedFile, OpenFile
from laketier.kit.event_time import EventTime
from laketier.kit.failpoints import failpoint
from laketier.kit.file_counts import FILE_COUNTS, FileEnd
from laketier.kit.partition import split_by_values
from laketier.kit.rolling_settings import RollingSettings


@dataclass
class _Part:
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    path: str | None = None
    stream: Any = None
    file: GrowingFile | None = None
    file_rows: int = 0
    since: float = 0.0
    """When its first row came: of the file, or of what will become one. By the writer's clock."""
    last: float = 0.0
    begun: int | None = None
    """The event time when it began."""


@dataclass
class _Unsplit:
    """Rows that wait to be split into their partitions."""

    since: float
    """When the first of them came."""
    event: int | None
    """The event time before they came."""
    begun: int | None
    """The event time at which a file of them would begin."""
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes


class RollingWriter:
    """Writes batches of one task into as few files as the settings allow. One thread. ``create(partition) -> (path,
    stream)`` makes the next file: the caller chooses unguessable names and creates them exclusively; ``stream`` is a
    writable `pyarrow.NativeFile`. ``open_file`` begins a file on it. A block has ``block_rows`` and about
    ``block_bytes`` in memory at most. ``keys(table)`` gives the partition key arrays; None without partitions.
    ``file_schema`` is the schema of the files where it differs from the table's ``schema`` (Delta leaves partition
    columns out). ``clock`` gives seconds that never go back. It is looked at with each batch: files are shown by a
    commit, so one that is closed between two batches would be seen no earlier."""

    def __init__(
        self,
        schema: pa.Schema,
        create: Callable[[tuple[Any, ...]], tuple[str, pa.NativeFile]],
        open_file: OpenFile,
        settings: RollingSettings,
        *,
        block_rows: int,
        block_bytes: int,
        keys: Callable[[pa.Table], Sequence[pa.ChunkedArray]] | None = None,
        file_schema: pa.Schema | None = None,
        on_closed: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._schema = schema
        self._file_schema = file_schema or schema
        self._create = create
        self._open = open_file
        self._settings = settings
        self._keys = keys
        self._on_closed = on_closed
        self._clock = clock
        self._rolls_by_time = (settings.target_file_seconds, settings.idle_file_seconds) != (None, None)
        self._event = EventTime.of(settings, schema)
        self._parts: dict[tuple[Any, ...], _Part] = {}
        self._closed: list[ClosedFile] = []
        self._buffered = 0
        self._unsplit: _Unsplit | None = None
        # An in-memory batch is larger than its encoded form, so a small byte target needs small blocks.
        self._block_bytes = min(block_bytes, max(settings.target_file_bytes, 1 << 20))
        self._split_bytes = min(self._block_bytes, max(settings.buffer_bytes // 8, 1 << 20))
        # What is being split is in memory twice more: as it came, and in order.
        self._most_buffered = settings.buffer_bytes
        if keys is not None:
            self._most_buffered = max(settings.buffer_bytes - 2 * self._split_bytes, self._split_bytes)
        self._piece_rows = block_rows
        self._block_rows = min(block_rows, settings.target_file_rows)
        self.paths: list[str] = []
        """Every path created so far, finished or not: what `abort` of a plugin must delete."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch. Raises `IncompatibleData` when it does not fit the schema."""
        batch = conform(batch, self._schema)
        if batch.num_rows == 0:
            return
        if self._rolls_by_time:
            self._roll_by_time()
        before = None if self._event is None else self._roll_by_event(self._event, batch)
        if self._keys is None:
            self._add((), [batch], batch.num_rows, batch.nbytes, self._clock(), before)
            return
        if self._unsplit is None:
            self._unsplit = _Unsplit(self._clock(), before, self._begins([batch], before))
        self._unsplit.add(batch)
        if self._unsplit.rows >= self._block_rows or self._unsplit.bytes >= self._split_bytes:
            self._split()

    def close(self) -> list[ClosedFile]:
        """Write buffered rows, close all files and return them in the order of closing."""
        self._split()
        for key, part in list(self._parts.items()):
            self._flush(key, part)
            self._close_file(key, part, FileEnd.TASK)
        self._parts.clear()
        return self._closed

    def checkpoint(self) -> tuple[list[ClosedFile], list[OpenedFile]]:
        """Write buffered rows, and close what is old or idle; leave the other files open, for `write` to go on with.
        Returns the files that were closed since the last checkpoint, and those that are open. For writers that live
        over epochs."""
        self._split()
        for key, part in list(self._parts.items()):
            self._flush(key, part)
        if self._rolls_by_time:
            self._roll_by_time()
        if self._event is not None:
            self._close_past(self._event)
        self._parts = {key: part for key, part in self._parts.items() if part.file is not None}
        closed, self._closed, self.paths = self._closed, [], []
        opened = [
            OpenedFile(part.path, part.file_rows, part.stream.tell(), key, part.file)
            for key, part in self._parts.items()
            if part.file is not None and part.path is not None
        ]
        return closed, opened

    @property
    def is_due(self) -> bool:
        """Whether `checkpoint` would close a file that is old or idle."""
        return self._rolls_by_time and any(
            self._over(part) is not None for part in self._parts.values() if part.rows or part.file is not None
        )

    def abandon(self) -> None:
        """Close open streams without finishing the files. The caller deletes `paths`."""
        for part in self._parts.values():
            if part.file is not None:
                part.file.abandon()
            if part.stream is not None and not part.stream.closed:
                part.stream.close()
        self._parts.clear()
        self._unsplit = None

    def _roll_by_time(self) -> None:
        """Close what is old or idle before the next rows come."""
        now = self._clock()
        age, idle = self._settings.target_file_seconds, self._settings.idle_file_seconds
        waits = min(limit for limit in (age, idle) if limit is not None)
        if self._unsplit is not None and now - self._unsplit.since >= waits:
            self._split()
        for key, part in list(self._parts.items()):
            why = self._over(part)
            if why is not None and (part.rows or part.file is not None):
                self._flush(key, part)
                self._close_file(key, part, why)

    def _roll_by_event(self, event: EventTime, batch: pa.RecordBatch) -> int | None:
        """Let the event time go on to that of ``batch``, and close what is past before its rows come. Returns the time
        of before."""
        before, ends = event.greatest, event.ends([batch])
        if ends is None or (before is not None and ends[1] <= before):
            return before
        event.greatest = ends[1]
        if self._unsplit is not None and event.is_past(self._unsplit.begun, event.greatest):
            self._split()
        self._close_past(event)
        return before

    def _close_past(self, event: EventTime) -> None:
        for key, part in list(self._parts.items()):
            if event.is_past(part.begun, event.greatest) and (part.rows or part.file is not None):
                self._flush(key, part)
                self._close_file(key, part, FileEnd.EVENT_TIME)

    def _begins(self, batches: list[pa.RecordBatch], before: int | None) -> int | None:
        """The event time at which a file begins whose first rows are these."""
        ends = None if self._event is None else self._event.ends(batches)
        return before if ends is None else ends[0] if before is None else max(before, ends[0])

    def _over(self, part: _Part) -> FileEnd | None:
        now, age, idle = self._clock(), self._settings.target_file_seconds, self._settings.idle_file_seconds
        if age is not None and now - part.since >= age:
            return FileEnd.AGE
        return FileEnd.IDLE if idle is not None and now - part.last >= idle else None

    def _split(self) -> None:
        waiting, self._unsplit = self._unsplit, None
        if waiting is None:
            return
        assert self._keys is not None
        table = pa.Table.from_batches(waiting.batches, schema=self._schema)
        for values, rows in split_by_values(table, self._keys(table)):
            self._add(values, rows.to_batches(), rows.num_rows, rows.nbytes, waiting.since, waiting.event)

    def _add(
        self,
        key: tuple[Any, ...],
        batches: list[pa.RecordBatch],
        rows: int,
        size: int,
        since: float,
        before: int | None,
    ) -> None:
        part = self._parts.pop(key, None) or _Part()
        self._parts[key] = part  # the dict's order is the order of last use
        part.batches += batches
        part.rows += rows
        part.bytes += size
        self._buffered += size
        part.last = self._clock()
        if part.file is None and part.rows == rows:
            part.since = since
        if part.begun is None and self._event is not None:
            part.begun = self._begins(batches, before)
        if part.rows >= self._block_rows or part.bytes >= self._block_bytes:
            self._flush(key, part)
        while self._buffered > self._most_buffered:
            largest = max(self._parts, key=lambda k: self._parts[k].bytes)
            self._flush(largest, self._parts[largest])

    def _flush(self, key: tuple[Any, ...], part: _Part) -> None:
        if not part.rows:
            return
        table = pa.Table.from_batches(part.batches, schema=self._schema)
        self._buffered -= part.bytes
        part.batches, part.rows, part.bytes = [], 0, 0
        if self._file_schema is not self._schema:
            table = table.select(self._file_schema.names).cast(self._file_schema)
        start = 0
        while start < table.num_rows:
            file = part.file or self._open_file(key, part)
            room = self._settings.target_file_rows - part.file_rows
            piece = table.slice(start, min(room, self._piece_rows))
            file.write(piece)
            failpoint("write.mid_file")
            start += piece.num_rows
            part.file_rows += piece.num_rows
            full = part.file_rows >= self._settings.target_file_rows
            if full or file.tell() >= self._settings.target_file_bytes:
                self._close_file(key, part, FileEnd.ROWS if full else FileEnd.BYTES)

    def _open_file(self, key: tuple[Any, ...], part: _Part) -> GrowingFile:
        open_parts = [k for k, other in self._parts.items() if other.file is not None]
        if len(open_parts) >= self._settings.max_open_files:
            self._flush(open_parts[0], self._parts[open_parts[0]])
            self._close_file(open_parts[0], self._parts[open_parts[0]], FileEnd.OPEN_FILES)
        part.path, part.stream = self._create(key)
        self.paths.append(part.path)
        part.file = self._open(part.stream, self._file_schema)
        part.file_rows = 0
        if part.begun is None and self._event is not None:
            part.begun = self._event.greatest  # rows of a file that ended by its size
        return part.file

    def _close_file(self, key: tuple[Any, ...], part: _Part, why: FileEnd) -> None:
        if part.file is None:
            return
        assert part.path is not None
        footer = part.file.close()
        size = part.stream.tell()
        part.stream.close()
        failpoint("stage.after_close_before_fsync")
        if self._on_closed is not None:
            self._on_closed(part.path)
        self._closed.append(ClosedFile(part.path, part.file_rows, size, key, footer, why))
        FILE_COUNTS.ended(why)
        part.path = part.stream = part.file = None
        part.file_rows = 0
        part.since = self._clock()
        part.begun = None
