"""Which of the rows that a writer refused are to blame: found by attempts with fewer of them, whose files are deleted.

A row's own values decide whether it can be stored (`UnstorableRows`). So each search finds the same rows, however a
replay cuts its batches. It is begun only after a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import LakeTieringFactory, UnstorableRows, WriteMode, WriterInitContext, new_attempt_id

Refusal = Callable[[int, int], UnstorableRows | None]
"""Tries the items from one place to another, exclusive. Returns why they were refused, None when they were not."""


class _Tried(Exception):
    """Makes a writer abort that refused nothing."""


@dataclass(frozen=True)
class Trial:
    """Finds what writers of ``factory`` refuse. ``attempts_after``: see `new_attempt_id`. ``mode``: of the round.
    Executor, and driver."""

    factory: LakeTieringFactory[Any]
    attempts_after: int = 0
    split_index: int = 0
    mode: WriteMode = WriteMode.APPEND

    def store(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Store rows, and delete them again. Raises as a writer does."""
        attempt = new_attempt_id(self.attempts_after)
        context = WriterInitContext(attempt=attempt, split_index=self.split_index, mode=self.mode)
        with suppress(_Tried), naming_storage_errors("rows were tried"), self.factory.create_writer(context) as writer:
            for batch in batches:
                writer.write(batch)
            writer.complete()
            raise _Tried

    def unstorable(self, batch: pa.RecordBatch) -> dict[int, str]:
        """The rows, by their place, that can't be stored, and why: a `FindUnstorable`. Raises what a writer raises for
        any other reason."""

        def refusal(start: int, end: int) -> UnstorableRows | None:
            try:
                self.store([batch.slice(start, end - start)])
            except UnstorableRows as error:
                return error
            return None

        found = refused_places(batch.num_rows, refusal)
        return {place: why_unstorable(error) for place, error in found.items()}


def refused_places(count: int, refusal: Refusal) -> dict[int, UnstorableRows]:
    """The places of ``count`` items that are refused alone, in order, each with its error. All are tried at once, and
    what is refused half by half."""
    found: dict[int, UnstorableRows] = {}
    pending = [(0, count)] if count else []
    while pending:
        start, end = pending.pop()
        error = refusal(start, end)
        if error is None:
            continue
        if end - start == 1:
            found[start] = error
            continue
        middle = (start + end) // 2
        pending += [(middle, end), (start, middle)]
    return found


def why_unstorable(error: UnstorableRows) -> str:
    """The reason as a dead letter has it: without a way out, which is for whoever reads the letter to choose."""
    return f"it can't be stored: {error.what}" + ("" if error.why is None else f", because {error.why}")
