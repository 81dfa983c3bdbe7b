"""What a task costs, which splits share one, what it answers, and who runs it."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from changes import ROWS, ChangeLog
from laketier.dead_letters.ahead import record_digest
from laketier.rounds import LogTask, OnBadRecordPolicy, run_log_task
from laketier.rounds.log_engine import LocalEngine, balanced
from laketier.rounds.splits import WEIGHT_OF_A_TASK, joined_groups, split_groups, weight_of
from laketier.spi import (
    BadRecord,
    IncompatibleData,
    LakeWriter,
    LogOffsets,
    LogSplit,
    SerializationError,
    StorageError,
    WriteMode,
    WriteResult,
    WriterInitContext,
    attempt_began_at,
    host_time,
)
from memory_lake import MemoryFactory, MemoryTable


def _files(count: int, size: int) -> list[LogSplit]:
    return [LogSplit(bucket="files", start=i, end=i + 1, bytes=size) for i in range(count)]


def test_bytes_and_offsets_are_of_one_weight() -> None:
    assert weight_of(LogSplit(bucket="0", start=10, end=1_010)) == 1_000
    assert weight_of(LogSplit(bucket="files", start=3, end=4, bytes=100_000)) == 1_000
    assert weight_of(LogSplit(bucket="files", start=3, end=4, bytes=7)) == 1, "nothing is for free"


@pytest.mark.parametrize(("count", "size", "tasks"), [(1_000, 1_000, 1), (4, 30_000_000, 4), (8, 12_000_000, 4)])
def test_small_splits_share_a_task_and_big_ones_do_not(count: int, size: int, tasks: int) -> None:
    splits = _files(count, size)
    groups = split_groups(splits)
    assert len(groups) == tasks
    assert [split for group in groups for split in group] == splits
    assert all(len(group) == 1 or sum(map(weight_of, group)) <= WEIGHT_OF_A_TASK for group in groups)


def test_a_split_is_cut_into_even_parts_that_leave_nothing_out() -> None:
    whole = LogSplit(bucket="0", start=2, end=12, bytes=100, payload=("a", 1))
    assert [(part.start, part.end, part.bytes) for part in whole.cut(4)] == [(2, 5, None), (5, 8, None), (8, 12, None)]
    assert {part.payload for part in whole.cut(4)} == {("a", 1)}
    assert list(LogSplit(bucket="0", start=5, end=5).cut(4)) == []


def test_parts_that_just_fit_share_a_task_and_stay_whole() -> None:
    half = LogSplit(bucket="a", start=0, end=WEIGHT_OF_A_TASK // 2)
    assert split_groups([half, half, half]) == [(half, half), (half,)]
    assert joined_groups([(half,), (half,), (half,)]) == [(half, half), (half,)]
    big = (half, half, half)
    assert joined_groups([big, (half,), (half,), big]) == [big, (half, half), big]
    assert joined_groups([]) == []


class Factory(MemoryFactory):
    """Keeps what its writers are made for."""

    def __init__(self, table: MemoryTable) -> None:
        super().__init__(table)
        self.made: list[WriterInitContext] = []

    def create_writer(self, context: WriterInitContext) -> LakeWriter[WriteResult]:
        self.made.append(context)
        return super().create_writer(context)


def _task(log: ChangeLog, **more: Any) -> LogTask:
    splits = tuple(LogSplit(bucket="0", start=at, end=at + 2) for at in (0, 2))
    plain = log.without(primary_key=(), change_column=None)
    return LogTask("t", plain, splits, Factory(MemoryTable(schema=plain.table.schema)), 7, **more)


def _log(*bad: int) -> ChangeLog:
    log = ChangeLog.of()
    log.append(*(("bad" if key in bad else "+I", key, "a") for key in range(4)))
    return log


def test_a_task_stages_its_rows_under_its_index_and_mode() -> None:
    task = _task(_log(), attempts_after=1 << 43)
    answer = run_log_task(task)
    assert (answer.table, answer.index, answer.error, answer.unread, answer.bad) == ("t", 7, None, False, 0)
    assert answer.message is not None
    factory = task.factory
    assert isinstance(factory, Factory)
    [context] = factory.made
    assert (context.split_index, context.mode) == (7, WriteMode.APPEND)
    assert attempt_began_at(context.attempt) == 1 << 43, "no earlier than the table's horizon"
    assert sorted(row for rows in factory.table.staged.values() for row in rows) == [0, 1, 2, 3]


def test_a_task_tells_at_each_batch_that_it_works() -> None:
    told: list[None] = []
    assert run_log_task(_task(_log()), lambda: told.append(None)).error is None
    assert len(told) == 2, "one batch a split"


def test_a_task_weighs_what_its_splits_do() -> None:
    assert _task(_log()).weight == 4


@pytest.mark.parametrize(("late", "unread"), [(-60_000, False), (0, True), (60_000, True)])
def test_a_task_is_not_begun_when_its_time_is_up(late: int, unread: bool) -> None:
    task = _task(_log(), within=60.5)
    before = host_time()
    begun = task.begun()
    assert begun.not_after is not None
    assert type(begun.not_after) is int
    assert 0 <= begun.not_after - before - 60_500 < 30_000
    answer = run_log_task(replace(begun, not_after=host_time() - late))
    assert (answer.unread, answer.message is None, answer.index) == (unread, unread, 7)
    assert _task(_log()).begun().not_after is None


def test_a_task_without_a_limit_is_begun_whenever() -> None:
    assert not run_log_task(replace(_task(_log()), not_after=None)).unread


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (IncompatibleData("does not fit"), "does not fit"),
        (RuntimeError("client says no"), "t: a task failed, because RuntimeError: client says no"),
    ],
)
def test_an_error_is_an_answer_of_its_task(raised: Exception, told: str) -> None:
    class Broken(ChangeLog):
        def read(self, split: LogSplit, **options: Any) -> Iterator[pa.RecordBatch]:
            raise raised

    log = _log()
    answer = run_log_task(_task(Broken(log.described, log.entries)))
    assert (answer.table, answer.index, answer.message) == ("t", 7, None)
    assert str(answer.error) == told
    assert isinstance(answer.error, (IncompatibleData, StorageError))


def test_an_interrupt_is_no_answer() -> None:
    """Ctrl-C ended as the failure of a table, and the job went on."""

    class Interrupted(ChangeLog):
        def read(self, split: LogSplit, **options: Any) -> Iterator[pa.RecordBatch]:
            raise KeyboardInterrupt

    log = _log()
    with pytest.raises(KeyboardInterrupt):
        run_log_task(_task(Interrupted(log.described, log.entries)))


@pytest.mark.parametrize(("since", "known"), [(0, (1, 2)), (2, (1, 2)), (3, (1, 2)), (3, (1,)), (3, (2,)), (3, ())])
def test_bad_records_are_kept_that_are_not_known_yet(since: int, known: tuple[int, ...]) -> None:
    """One that became bad since a round was killed lies in its range, and is none of its letters."""
    dead = MemoryFactory(MemoryTable(schema=ROWS))
    task = _task(
        _log(1, 2),
        policy=OnBadRecordPolicy.DEAD_LETTER,
        dead_letters=dead,
        dead_letters_from=LogOffsets({"0": since}),
        dead_letters_known=frozenset(
            record_digest(BadRecord(bucket="0", offset=at, error="as it was", value=b"")) for at in known
        ),
    )
    kept: list[int] = []
    dead.create_writer = lambda context: _Letters(kept)  # type: ignore[method-assign]
    answer = run_log_task(task)
    assert (answer.error, answer.bad) == (None, 2)
    assert kept == [offset for offset in (1, 2) if offset >= since or offset not in known]


class _Letters(LakeWriter[WriteResult]):
    """Keeps the offsets of the dead letters."""

    def __init__(self, kept: list[int]) -> None:
        self.kept = kept

    def write(self, batch: pa.RecordBatch) -> None:
        self.kept += batch["offset"].to_pylist()

    def complete(self) -> WriteResult:
        return WriteResult.of(MemoryTable().info, "a", ())

    def abort(self) -> None:
        pass


# -- engines ---------------------------------------------------------------------------------------------------------


def _weighing(weight: int, index: int) -> LogTask:
    splits = (LogSplit(bucket="0", start=0, end=weight),)
    return LogTask(f"t{index}", _log(), splits, MemoryFactory(MemoryTable()), index)


def _loads(groups: list[list[LogTask]]) -> list[list[int]]:
    return [[task.weight for task in group] for group in groups]


def test_tasks_are_spread_by_their_weight() -> None:
    tasks = [_weighing(weight, index) for index, weight in enumerate([1_000, 9_000, 5_000, 4_000])]
    assert _loads(balanced(tasks, 2)) == [[9_000, 1_000], [5_000, 4_000]]
    assert _loads(balanced(tasks, 1)) == [[9_000, 5_000, 4_000, 1_000]]
    assert _loads(balanced(tasks[:2], 5)) == [[9_000], [1_000]], "no group is empty"
    assert balanced([], 3) == []
    with pytest.raises(ValueError, match="0 groups can't hold anything"):
        balanced(tasks, 0)


def test_a_task_costs_something_however_light_it_is() -> None:
    tasks = [_weighing(weight, index) for index, weight in enumerate([2_500, *[1] * 6])]
    assert _loads(balanced(tasks, 2)) == [[2_500, 1], [1] * 5]


def test_tasks_run_at_once_and_answer_as_they_end() -> None:
    log = _log()
    first_may_end = threading.Event()
    threads: list[str] = []

    class Named(ChangeLog):
        def read(self, split: LogSplit, **options: Any) -> Iterator[pa.RecordBatch]:
            threads.append(threading.current_thread().name)
            return super().read(split, **options)

    class First(ChangeLog):
        def read(self, split: LogSplit, **options: Any) -> Iterator[pa.RecordBatch]:
            assert first_may_end.wait(60)
            return super().read(split, **options)

    slow = replace(_task(First(log.described, log.entries)), index=0)
    quick = replace(_task(Named(log.described, log.entries)), index=1)
    engine = LocalEngine(2)
    answers = engine.run([slow, quick])
    assert next(answers).index == 1
    first_may_end.set()
    assert [answer.index for answer in answers] == [0]
    assert set(threads) == {"laketier-task"}
    engine.close()


@pytest.mark.parametrize("wait", [True, False])
def test_an_engine_that_closes_begins_nothing_more(wait: bool) -> None:
    begun, may_end = threading.Event(), threading.Event()
    log = _log()

    class Held(ChangeLog):
        def read(self, split: LogSplit, **options: Any) -> Iterator[pa.RecordBatch]:
            begun.set()
            assert may_end.wait(60)
            return super().read(split, **options)

    ran = _task(log)
    engine = LocalEngine(1)
    engine.run([_task(Held(log.described, log.entries)), ran])
    assert begun.wait(60)
    closed = threading.Event()

    def close() -> None:
        engine.close(wait=wait)
        closed.set()

    closing = threading.Thread(target=close)
    closing.start()
    if wait:
        with suppress(RuntimeError):  # of an engine that closes: what it took until then is cancelled
            while closing.is_alive():
                engine.run([ran])
        assert not closed.is_set(), "a task still runs"
    else:
        assert closed.wait(60), "nobody waits for a task that runs"
    may_end.set()
    closing.join(60)
    engine.close()
    factory = ran.factory
    assert isinstance(factory, Factory)
    assert factory.made == [], "the second task was never begun"
    with pytest.raises(RuntimeError):
        engine.run([ran])


class Speechless(Exception):
    """An error that fails as it is asked for its words."""

    def __str__(self) -> str:
        raise RuntimeError("there are none")


def test_an_error_without_words_is_an_answer_of_its_task() -> None:
    """Raised again, it would end the job that other tables share."""

    class Failing(ChangeLog):
        def read(self, split: LogSplit, **_: Any) -> Iterator[pa.RecordBatch]:
            raise Speechless

    answer = run_log_task(_task(Failing.of()))
    assert isinstance(answer.error, StorageError)
    assert "Speechless, whose text can't be made: RuntimeError" in str(answer.error)


class _Sent:
    """What a task carries."""


def _sent() -> LogTask:
    carried: Any = _Sent()
    return LogTask("t", carried, (LogSplit(bucket="0", start=0, end=3),), carried)


def test_a_task_travels_to_an_executor_of_the_same_version() -> None:
    task = replace(_sent(), dead_letters_known=frozenset({b"1"}), index=4)
    came = pickle.loads(pickle.dumps(task))  # noqa: S301
    assert type(came) is LogTask
    assert replace(came, log=task.log, factory=task.factory) == task


@pytest.mark.parametrize("change", ["version", "fields"])
def test_a_task_of_another_version_is_refused_before_it_is_read(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor left out what it did not know. Then letters that were there were written again, or not at all."""
    sent = pickle.dumps(_sent())
    if change == "version":
        monkeypatch.setattr("laketier.rounds.log_task._VERSION", "0.0.9")
    else:
        monkeypatch.setattr("laketier.rounds.log_task._names", lambda: ("table", "log"))
    monkeypatch.delattr(sys.modules[__name__], "_Sent")  # as executors lack what is newer
    with pytest.raises(SerializationError, match=r"a task of laketier .* came to an executor .*Install the same"):
        pickle.loads(sent)  # noqa: S301


def test_a_task_of_a_driver_that_did_not_tell_its_version_is_refused() -> None:
    """Such a driver's pickle makes an empty task, and hands it the fields that it had."""
    with pytest.raises(SerializationError, match="a task of an older laketier came to an executor"):
        object.__new__(LogTask).__setstate__(vars(_sent()).copy())
