"""Rows that a writer refuses: found by halves, told as bad records, and nothing else taken aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from changes import ChangeLog
from laketier.kit.validation import refuse_invalid
from laketier.rounds import LogTask, OnBadRecordPolicy, run_log_task
from laketier.rounds.checked_log import CheckedLog
from laketier.spi import (
    BadRecord,
    FeatureNotSupported,
    FindUnstorable,
    IncompatibleData,
    LakeWriter,
    LogSplit,
    OnBadRecord,
    PluginBroken,
    StorageError,
    UnstorableRows,
    WriteResult,
    WriterInitContext,
)
from laketier.tiering.unstorable import Trial, refused_places
from memory_lake import SCHEMA, MemoryFactory, MemoryTable, MemoryWriter


class Strict(MemoryFactory):
    """Its writers refuse, as they end, ids that ``is_bad``."""

    def __init__(self, is_bad: Callable[[int], bool], error: type[Exception] = UnstorableRows) -> None:
        super().__init__(MemoryTable())
        self.is_bad, self.error = is_bad, error
        self.trials = 0

    def create_writer(self, context: WriterInitContext) -> LakeWriter[WriteResult]:
        self.trials += 1
        return _Writer(self, context)


class _Writer(MemoryWriter):
    def __init__(self, factory: Strict, context: WriterInitContext) -> None:
        super().__init__(factory.table, context)
        self.factory = factory

    def complete(self) -> WriteResult:
        if any(map(self.factory.is_bad, self.rows)):
            raise self.factory.error("an id is bad")
        return super().complete()

    def abort(self) -> None:
        super().abort()
        for name in [name for name in self.table.staged if name.startswith(self.context.attempt)]:
            del self.table.staged[name]


def _log(count: int) -> ChangeLog:
    log = ChangeLog.of().without(primary_key=(), change_column=None, schema=SCHEMA)
    log.append(*(("+I", key, "a") for key in range(count)))
    return log


class Rows(ChangeLog):
    """Without the column of change types."""

    def read(self, split: LogSplit, **options: Any) -> Iterator[pa.RecordBatch]:
        return (batch.select(SCHEMA.names) for batch in super().read(split, **options))


def _task(factory: MemoryFactory, policy: OnBadRecordPolicy, log: ChangeLog | None = None) -> LogTask:
    plain = _log(20) if log is None else log
    splits = tuple(LogSplit(bucket="0", start=at, end=at + 5) for at in range(0, 20, 5))
    return LogTask("t", Rows(plain.described, plain.entries), splits, factory, policy=policy)


@pytest.mark.parametrize("bad", [(), (0,), (6,), (0, 3, 6), tuple(range(7))])
def test_what_is_refused_alone_is_found_by_halves(bad: tuple[int, ...]) -> None:
    def refusal(start: int, end: int) -> UnstorableRows | None:
        found = [place for place in bad if start <= place < end]
        return UnstorableRows(f"{found}") if found else None

    found = refused_places(7, refusal)
    assert list(found) == list(bad)
    assert [error.what for error in found.values()] == [f"[{place}]" for place in bad]
    assert refused_places(0, refusal) == {}


def test_what_is_refused_together_alone_is_nobodys_fault() -> None:
    assert refused_places(4, lambda start, end: UnstorableRows("two") if end - start > 1 else None) == {}


def test_nothing_is_tried_as_long_as_nothing_is_refused() -> None:
    factory = Strict(lambda _: False)
    assert run_log_task(_task(factory, OnBadRecordPolicy.DROP)).error is None
    assert factory.trials == 1


def test_rows_that_are_refused_late_are_bad_records_and_the_others_are_staged_once() -> None:
    factory = Strict(lambda key: key % 9 == 4)
    answer = run_log_task(_task(factory, OnBadRecordPolicy.DROP))
    assert (answer.error, answer.bad) == (None, 2)
    assert sorted(row for rows in factory.table.staged.values() for row in rows) == [
        key for key in range(20) if key % 9 != 4
    ]


class RefusesLate(Rows):
    """A method with a `yield`."""

    tells = False

    def read_storable(self, split: LogSplit, *_: Any, on_bad_record: OnBadRecord) -> Iterator[pa.RecordBatch]:
        if self.tells:
            on_bad_record(BadRecord(bucket="0", offset=split.start, error="it is bad", value=None))
        if split.start >= 0:
            raise FeatureNotSupported("telling the records of rows", format="notes", reason="the table has none")
        yield


@pytest.mark.parametrize("tells", [False, True])
def test_a_source_that_refuses_to_tell_records_as_it_is_read_is_read_without(tells: bool) -> None:
    """Unless it told some first, which would be told twice."""
    factory = Strict(lambda key: key % 9 == 4)
    task = _task(factory, OnBadRecordPolicy.DROP)
    log = RefusesLate(task.log.table, _log(20).entries)
    log.tells = tells
    answer = run_log_task(replace(task, log=log))
    if tells:
        assert isinstance(answer.error, FeatureNotSupported)
        return
    assert (answer.error, answer.bad) == (None, 2)
    assert sum(map(len, factory.table.staged.values())) == 18


def test_the_first_record_that_is_refused_ends_a_task_that_is_to_fail() -> None:
    answer = run_log_task(_task(Strict(lambda key: key in (7, 8)), OnBadRecordPolicy.FAIL))
    assert isinstance(answer.error, UnstorableRows)
    assert "the record at offset 9 of bucket '0' is a row that the table can't store, because" in str(answer.error)
    assert "it is {'id': 7, 'name': 'a'}" in str(answer.error)
    assert "Or set on-bad-record to dead-letter or drop" in str(answer.error)


@pytest.mark.parametrize("error", [IncompatibleData, StorageError, ValueError])
def test_no_row_is_taken_aside_for_any_other_error(error: type[Exception]) -> None:
    """A plugin that knows no `UnstorableRows` stops its table, as it did. So does a disk."""
    factory = Strict(lambda key: key == 7, error)
    answer = run_log_task(_task(factory, OnBadRecordPolicy.DROP))
    assert "an id is bad" in str(answer.error)
    assert (answer.message, answer.bad, factory.trials, factory.table.staged) == (None, 0, 1, {})


def test_a_disk_that_fails_while_rows_are_tried_fails_the_task() -> None:
    class Failing(Strict):
        def create_writer(self, context: WriterInitContext) -> LakeWriter[WriteResult]:
            if self.trials == 2:
                raise OSError(28, "No space left on device")
            return super().create_writer(context)

    factory = Failing(lambda key: key == 7)
    answer = run_log_task(_task(factory, OnBadRecordPolicy.DROP))
    assert isinstance(answer.error, StorageError)
    assert (answer.message, factory.table.staged) == (None, {})


def test_what_a_trial_stored_is_deleted() -> None:
    factory = Strict(lambda key: key == 2)
    batch = pa.record_batch({"id": [1, 2, 3], "name": ["a", "b", "c"]}, schema=SCHEMA)
    assert Trial(factory).unstorable(batch) == {1: "it can't be stored: an id is bad"}
    assert factory.table.staged == {}
    assert factory.table.calls == ["abort"] * factory.trials


def test_a_source_that_tells_records_of_other_splits_breaks_its_contract() -> None:
    class Telling(Rows):
        def read_storable(
            self, split: LogSplit, find_unstorable: FindUnstorable, *, on_bad_record: OnBadRecord = lambda _: None
        ) -> Iterator[pa.RecordBatch]:
            for batch in self.read(split):
                for at, error in find_unstorable(batch).items():
                    on_bad_record(BadRecord(bucket=split.bucket, offset=split.end + at, error=error, value=b""))
                yield batch

    log = _log(20)
    task = _task(Strict(lambda key: key == 7), OnBadRecordPolicy.DROP)
    checked = CheckedLog.of(Telling(log.described, log.entries), "t")
    answer = run_log_task(LogTask("t", checked, task.splits, task.factory, policy=task.policy))
    assert isinstance(answer.error, PluginBroken)


def test_text_that_is_none_is_a_rows_own_fault_only_where_each_batch_is_looked_at() -> None:
    """Where the first batch alone is, a replay that cuts its batches otherwise would find other rows."""
    odd = pa.StringArray.from_buffers(1, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff"))
    batch = pa.record_batch([odd], names=["text"])
    with pytest.raises(UnstorableRows):
        refuse_invalid(batch)
    with pytest.raises(IncompatibleData) as caught:
        refuse_invalid(batch, each=False)
    assert not isinstance(caught.value, UnstorableRows)
