"""Dead letters of a task, staged as they come: a source may hold any number of records that are no rows."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from laketier.dead_letters.table import dead_letter_batch
from laketier.spi import BadRecord, LakeTieringFactory, WriterInitContext
from laketier.tiering import StagedTask

HELD_BYTES = 16 * 1024 * 1024
"""About so much of them is held in memory. One letter may be larger."""
_LETTER_BYTES = 500
"""What one takes beside its texts."""


class LetterStaging:
    """Takes letters, then ``complete``. As a context manager it deletes what it staged when the block raises."""

    def __init__(self, factory: LakeTieringFactory[Any], source_table: str, context: WriterInitContext) -> None:
        self._factory = factory
        self._source_table = source_table
        self._context = context
        self._staged: StagedTask | None = None
        self._held: list[BadRecord] = []
        self._bytes = 0

    def take(self, record: BadRecord) -> None:
        """Raises what a writer does."""
        length = len(record.value or b"") + len(record.key or b"") + len(record.error) + _LETTER_BYTES
        if self._held and self._bytes + length > HELD_BYTES:
            self._write()
        self._held.append(record)
        self._bytes += length

    def complete(self) -> bytes | None:
        """The message for the round of the dead-letter table; None when there were none."""
        if self._held:
            self._write()
        return None if self._staged is None else self._staged.complete()

    def _write(self) -> None:
        batch = dead_letter_batch(self._source_table, self._held)
        self._held, self._bytes = [], 0
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
