"""Stages the dead letters of a task as they come: a source may hold any number of bad records."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from laketier.dead_letters.table import dead_letter_batch
from laketier.spi import BadRecord, LakeTieringFactory, WriterInitContext
from laketier.tiering import StagedTask

MAX_BUFFERED_BYTES = 16 * 1024 * 1024
"""The buffer's size: it is written to the table when the next record would exceed it. A single record may be larger."""
_RECORD_BYTES = 500
"""The bytes that a buffered record takes beside its texts."""


class DeadLetterStaging:
    """Call `take` for each bad record, then `complete`. As a context manager it deletes its files when the block
    raises."""

    def __init__(self, factory: LakeTieringFactory[Any], source_table: str, context: WriterInitContext) -> None:
        self._factory = factory
        self._source_table = source_table
        self._context = context
        self._staged: StagedTask | None = None
        self._buffered: list[BadRecord] = []
        self._bytes = 0

    def take(self, record: BadRecord) -> None:
        """Add one bad record. Raises as a writer does."""
        length = len(record.value or b"") + len(record.key or b"") + len(record.error) + _RECORD_BYTES
        if self._buffered and self._bytes + length > MAX_BUFFERED_BYTES:
            self._write()
        self._buffered.append(record)
        self._bytes += length

    def complete(self) -> bytes | None:
        """End the task. Returns the message for the dead-letter table's round, None without bad records."""
        if self._buffered:
            self._write()
        return None if self._staged is None else self._staged.complete()

    def _write(self) -> None:
        batch = dead_letter_batch(self._source_table, self._buffered)
        self._buffered, self._bytes = [], 0
        if self._staged is None:
            self._staged = StagedTask(self._factory, self._context)
        self._staged.write(batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._staged is not None:
            self._staged.__exit__(kind, error, trace)
