"""More wrong sources: who asks them waits for ever."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

import pyarrow as pa

from altered_habits import RIGHT, WRONG, plugin_of
from altered_notes import Right, wrong
from laketier.spi import LogSplit, OnBadRecord, StorageError, fail_on_bad_record
from notes import NotesLog, NotesSource

__all__ = ["RIGHT", "WRONG", "plugin_of"]


@wrong(
    "test_offsets.py::test_a_range_beyond_the_log_is_refused", "`WaitsForWhatIsNotThere.read` (altered_waits.py, line"
)
class WaitsForWhatIsNotThere(NotesLog):
    """Until its split is full: by then, somebody may have appended it."""

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                yield from super().read(split, columns=columns, on_bad_record=on_bad_record)
                return
            except StorageError:
                time.sleep(0.05)


@wrong("test_offsets.py::test_a_range_beyond_the_log_is_refused", "gives 10000 batches without a row")
class GivesEmptyBatchesForEver(NotesLog):
    """As a client does that polls, and gives what each poll gave."""

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        try:
            yield from super().read(split, columns=columns, on_bad_record=on_bad_record)
        except StorageError:
            empty = self.batch([])[0]
            while True:
                yield empty


@wrong(
    "test_failures.py::test_a_system_that_does_not_answer_is_told", "and was ended: expected an answer, or StorageError"
)
class AsksAgainForEver(NotesSource):
    """Of each error it thinks that it will pass."""

    def list_tables(self) -> Sequence[str]:
        while True:
            try:
                return super().list_tables()
            except Exception:  # noqa: BLE001 - as its authors do
                time.sleep(0.05)


@wrong("test_lives.py::test_threads_read_splits_of_a_log_at_once", "`reads = list(pool.map(lambda split")
class WaitsInAThread(NotesLog):
    """For its lock, which another of its threads has."""

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        if threading.current_thread() is not threading.main_thread():
            threading.Event().wait()
        yield from super().read(split, columns=columns, on_bad_record=on_bad_record)


@wrong("test_same_rows.py::test_each_row_is_read_once", "`PassesOverInterrupts.read` (altered_waits.py, line")
class PassesOverInterrupts(NotesLog):
    """An error is an error."""

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                time.sleep(60)
            except BaseException:  # noqa: BLE001 - as its authors do
                continue
        yield  # type: ignore[unreachable]


@wrong("test_same_rows.py::test_each_row_is_read_once", "`HearsNothing.read` (altered_waits.py, line")
class HearsNothing(NotesLog):
    """As a library that waits beyond Python."""

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        time.sleep(600)
        yield from super().read(split, columns=columns, on_bad_record=on_bad_record)


class _IsSlow(NotesLog):
    """It gives a thousand batches without rows before each other one. Its first read takes longer than patience lasts,
    and no step of it does."""

    has_thought: ClassVar[bool] = False

    def read(
        self, split: LogSplit, *, columns: Sequence[str] | None = None, on_bad_record: OnBadRecord = fail_on_bad_record
    ) -> Iterator[pa.RecordBatch]:
        empty = self.batch([])[0]
        empty = empty if columns is None else empty.select(list(columns))
        thoughts = 0 if _IsSlow.has_thought else 4
        _IsSlow.has_thought = True
        for _ in range(thoughts):
            time.sleep(2.0)
            yield empty
        for batch in super().read(split, columns=columns, on_bad_record=on_bad_record):
            for _ in range(1_000):
                yield empty
            yield batch


RIGHT["is_slow"] = Right(_IsSlow, "NotesHarness", ("test_same_rows.py::test_each_row_is_read_once",))
