"""One task of a round from a log: it stages the rows of its splits and treats bad records.

Where a writer refuses rows, the task begins again: each batch is tried before it is staged, and rows that can't be
stored are bad records. Nothing is tried as long as nothing is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

import pyarrow as pa

from laketier.dead_letters.ahead import record_digest
from laketier.dead_letters.staging import DeadLetterStaging
from laketier.kit.library_errors import as_told
from laketier.rounds.splits import weight_of
from laketier.rounds.told_changes import without_refused
from laketier.rounds.unstorable import fails_on, shared_refusal, storable_rows, unstorable_changes
from laketier.rounds.upsert import Merge
from laketier.spi import (
    BadRecord,
    FindUnstorable,
    LaketierError,
    LakeTieringFactory,
    LogOffsets,
    LogSplit,
    OnBadRecord,
    OpenFilesSlot,
    SerializationError,
    TableLog,
    UnstorableRows,
    WriteMode,
    WriterInitContext,
    fail_on_bad_record,
    host_time,
    new_attempt_id,
)
from laketier.tiering import write_task
from laketier.tiering.unstorable import Trial

_VERSION: str = sys.modules[__name__.partition(".")[0]].__version__
"""Of this laketier. Its own module, imported by name, is above all rooms."""


class OnBadRecordPolicy(Enum):
    """The treatment of a record that can't be read, or whose row the lake can't store."""

    FAIL = "fail"
    DEAD_LETTER = "dead-letter"
    DROP = "drop"


@dataclass(frozen=True)
class LogTask:
    """Made on the driver, run by one executor. ``table`` is the round's name among those of one job. ``within``:
    seconds, from when it was handed to an engine, after which it is not begun any more; ``not_after``: that moment (ms
    since the epoch, UTC), by `begun`. None for a task that must be run."""

    table: str
    log: TableLog
    splits: tuple[LogSplit, ...]
    factory: LakeTieringFactory[Any]
    index: int = 0
    policy: OnBadRecordPolicy = OnBadRecordPolicy.FAIL
    dead_letters: LakeTieringFactory[Any] | None = None
    within: float | None = None
    not_after: int | None = None
    dead_letters_from: LogOffsets = field(default_factory=LogOffsets)
    """Bad records below may be in the dead-letter table already: a round before this one put them there, and failed."""
    dead_letters_known: frozenset[bytes] = frozenset()
    """Those that are, by `record_digest`, of the buckets of ``splits``."""
    merge: Merge | None = None
    """For a table with a primary key."""
    attempts_after: int = 0
    """`TieringRound.attempts_after`; ``dead_letter_attempts_after`` the same, for the dead-letter table."""
    dead_letter_attempts_after: int = 0
    open_files: OpenFilesSlot | None = field(default=None, compare=False)
    """For engines that run tasks in the driver's own process; never pickled."""

    @property
    def weight(self) -> int:
        """The cost of the task, relative to others: `weight_of` its splits."""
        return sum(map(weight_of, self.splits))

    def begun(self) -> LogTask:
        """As it is handed to an engine, now. Driver. Clocks of executors that differ from the driver's move the moment,
        and nothing else."""
        return self if self.within is None else replace(self, not_after=host_time() + round(self.within * 1000))

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_driver, (_VERSION, _names()), (vars(self).copy(),)

    def __setstate__(self, state: tuple[dict[str, Any]] | dict[str, Any]) -> None:
        # pickle's own way, without `__reduce__`: what such a task lacks would be taken for its default.
        if isinstance(state, dict):
            raise _of_another("an older laketier")
        vars(self).update(state[0])


def _of_driver(version: str, names: tuple[str, ...]) -> LogTask:
    """An empty task, into which pickle then puts the state. What a driver of another version sent is not read."""
    if version != _VERSION or names != _names():
        raise _of_another(f"laketier {version}")
    return object.__new__(LogTask)


def _of_another(driver: str) -> SerializationError:
    """An executor of another version would leave out what it does not know, such as which dead letters are there."""
    return SerializationError(
        f"a task of {driver} came to an executor with laketier {_VERSION}",
        why="their tasks differ, so rows or dead letters could be lost or doubled",
        fix="Install the same laketier and plugins on the driver and on all executors. Nothing was written.",
    )


def _names() -> tuple[str, ...]:
    return tuple(each.name for each in fields(LogTask))


@dataclass(frozen=True)
class LogAnswer:
    """The result of a task. ``message`` (and ``dead_letters``) are staged files, packed for `TieringRound`; both are
    None after an ``error``, and when the task was left ``unread`` as time was up. ``bad`` counts the records that
    were dead-lettered or dropped. ``index``: the task's."""

    table: str
    message: bytes | None = None
    dead_letters: bytes | None = None
    bad: int = 0
    error: LaketierError | None = None
    index: int = 0
    unread: bool = False


@dataclass
class _BadRecords:
    policy: OnBadRecordPolicy
    since: LogOffsets
    known: frozenset[bytes]
    dead_letters: DeadLetterStaging | None
    told: bool = True
    refused: UnstorableRows | None = None
    count: int = 0

    def handler(self) -> OnBadRecord:
        if self.policy is not OnBadRecordPolicy.FAIL:
            return self._take
        return fail_on_bad_record if self.refused is None else fails_on(self.refused)

    def _take(self, record: BadRecord) -> None:
        if not self.told:
            return
        self.count += 1
        if self.policy is OnBadRecordPolicy.DEAD_LETTER and not self._is_known(record):
            assert self.dead_letters is not None
            self.dead_letters.take(record)

    def _is_known(self, record: BadRecord) -> bool:
        return record.offset < self.since.get(record.bucket, 0) and record_digest(record) in self.known


def run_log_task(task: LogTask, works: Callable[[], None] | None = None) -> LogAnswer:
    """Read, stage, answer. Executor. An error is an answer too, also one that is no `Exception`, as a panic of a
    library in Rust: it must not end the job, which other tables share. Raises only what `ends_the_process`.
    ``works`` is called at each batch that the source or a merge gives."""
    try:
        return _run(task, works or _nobody)
    except BaseException as error:  # noqa: BLE001 - whatever a client library may raise is this table's trouble alone
        return LogAnswer(task.table, error=as_told(error, "a task failed", where=task.table), index=task.index)


def _nobody() -> None:
    """Nobody asks whether the task goes on."""


def _run(task: LogTask, works: Callable[[], None]) -> LogAnswer:
    if task.not_after is not None and host_time() >= task.not_after:
        return LogAnswer(task.table, index=task.index, unread=True)
    try:
        return _staged(task, works)
    except UnstorableRows as refused:
        if task.merge is not None and not task.merge.takes_whole_records:
            raise shared_refusal(refused) from refused
        return _staged(task, works, refused)


def _staged(task: LogTask, works: Callable[[], None], refused: UnstorableRows | None = None) -> LogAnswer:
    merge = task.merge
    with _dead_letters(task) as dead_letters:
        told = merge is None or merge.counts_bad
        bad = _BadRecords(
            task.policy, task.dead_letters_from, task.dead_letters_known, dead_letters, told=told, refused=refused
        )
        rows, replaced = _told(_batches(task, bad), works), list[str]()
        if merge is not None:
            unordered = any(split.unordered for split in task.splits)
            rows = _told(merge.merged(rows, replaced, unordered=unordered), works)
        message = write_task(task.factory, rows, _context(task, merge), replaced)
        dead = None if dead_letters is None else dead_letters.complete()
    return LogAnswer(task.table, message, dead, bad.count, index=task.index)


def _told(rows: Iterator[pa.RecordBatch], works: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        works()
        yield batch


def _dead_letters(task: LogTask) -> AbstractContextManager[DeadLetterStaging | None]:
    if task.dead_letters is None:
        return nullcontext()
    attempt = new_attempt_id(task.dead_letter_attempts_after)
    context = replace(_context(task, None), attempt=attempt, open_files=None)
    return DeadLetterStaging(task.dead_letters, task.log.table.name, context)


def _context(task: LogTask, merge: Merge | None) -> WriterInitContext:
    return WriterInitContext(
        attempt=new_attempt_id(task.attempts_after),
        split_index=task.index,
        mode=WriteMode.APPEND if merge is None else WriteMode.UPSERT,
        open_files=task.open_files if merge is None else None,
    )


def _batches(task: LogTask, bad: _BadRecords) -> Iterator[pa.RecordBatch]:
    find = None if bad.refused is None else _find_unstorable(task)
    for split in task.splits:
        if find is None:
            rows = task.log.read(split, on_bad_record=bad.handler())
        else:
            rows = storable_rows(task.log, split, find, bad.handler())
        yield from rows if task.merge is None else without_refused(rows, split, task.merge, bad.handler())


def _find_unstorable(task: LogTask) -> FindUnstorable:
    if task.merge is None:
        return Trial(task.factory, task.attempts_after, task.index).unstorable
    trial = Trial(task.factory, task.attempts_after, task.index, WriteMode.UPSERT)
    return unstorable_changes(task.merge, trial.unstorable)
