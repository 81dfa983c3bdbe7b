"""A round from a log, by what it tells its tasks and its caller. Real tables of localfile, and logs of JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.config import LakeConfig
from laketier.dead_letters.records import scan_dead_letters
from laketier.dead_letters.table import dead_letter_table
from laketier.registry import configure, open_lake, open_log_source
from laketier.rounds import LogAnswer, LogRound, LogRoundSettings, OnBadRecordPolicy, OnExpired, log_round, run_log_task
from laketier.rounds.keyed import KeyedLog
from laketier.spi import (
    BadRecord,
    BucketBounds,
    ConfigError,
    Gap,
    LogOffsets,
    LogRange,
    LogSplit,
    OffsetsExpired,
    Refused,
    Stale,
    StorageError,
    TableChanged,
    TableLog,
    TokenMismatch,
    WriterInitContext,
    attempt_began_at,
    host_time,
)
from laketier.tiering import RoundOutcome, TieringRound, pipelines
from laketier.tiering.horizon import raise_horizon
from laketier_verification.lines import CutLog, LinesTable

DEAD = LogRoundSettings(on_bad_record=OnBadRecordPolicy.DEAD_LETTER)


@pytest.fixture
def source(tmp_path: Path) -> LinesTable:
    return LinesTable(tmp_path / "logs", "t").create(buckets=2)


@pytest.fixture
def config(tmp_path: Path) -> LakeConfig:
    options = {
        "lake.format": "localfile",
        "lake.warehouse": str(tmp_path / "lake"),
        "lake.table": "db.t",
        "lake.pipeline": "tests.t",
    }
    return configure(options, origin="the test")


def opened(source: LinesTable) -> TableLog:
    found = open_log_source("lines", {"path": str(source.root)}, name="lines", origin="the test")
    return found.open(source.name)


def planned(
    source: LinesTable, config: LakeConfig, settings: LogRoundSettings | None = None, **more: Any
) -> tuple[LogRound, list[Any]]:
    made = LogRound(more.pop("log", None) or opened(source), config, settings or LogRoundSettings(), **more)
    return made, list(made.plan())


def ran(source: LinesTable, config: LakeConfig, settings: LogRoundSettings | None = None, **more: Any) -> Any:
    made, tasks = planned(source, config, settings, **more)
    return made.finish([run_log_task(task) for task in tasks])


def version(config: LakeConfig) -> int | None:
    return open_lake(config).load_table().snapshot_id


@dataclass(frozen=True)
class Changed(CutLog):
    """A log, not cut, some of whose methods fail."""

    failing: str = ""
    error: Exception | None = None

    def _asked(self, method: str) -> None:
        if method == self.failing:
            assert self.error is not None
            raise self.error

    def bounds(self) -> Mapping[str, BucketBounds]:
        self._asked("bounds")
        return super().bounds()

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        self._asked("plan")
        return self.log.plan(wanted)

    def read(self, split: LogSplit, **options: Any) -> Iterator[pa.RecordBatch]:
        self._asked(f"read {split.bucket}")
        return super().read(split, **options)


def test_a_round_tells_what_it_did(source: LinesTable, config: LakeConfig) -> None:
    source.append(1, 2, 3)
    source.append(10, bucket=1)
    done = ran(source, config)
    assert (done.outcome, done.epoch, done.rows, done.bad) == (RoundOutcome.PUBLISHED, 0, 4, 0)
    assert (done.start, done.end, done.left) == (LogOffsets(), LogOffsets({"0": 3, "1": 1}), 0)
    assert done.files >= 1
    assert done.bytes > 0
    assert done.snapshot_id == version(config)
    source.append(4, 5, 6)
    limited = ran(source, config, LogRoundSettings(most=2))
    assert (limited.epoch, limited.start, limited.end, limited.left) == (1, done.end, LogOffsets({"0": 5, "1": 1}), 1)


def test_a_round_with_nothing_to_do_tells_where_the_table_is(source: LinesTable, config: LakeConfig) -> None:
    source.append(1)
    first = ran(source, config)
    again = ran(source, config)
    assert (again.outcome, again.end, again.left, again.left_at, again.epoch) == (None, first.end, 0, None, None)
    made, tasks = planned(source, config)
    assert tasks == []
    made.abort([])


def test_what_is_left_is_told_with_its_moment(source: LinesTable, config: LakeConfig) -> None:
    source.append(1, 2, 3)

    class Dated(Changed):
        def bounds(self) -> Mapping[str, BucketBounds]:
            return {bucket: replace(found, latest_at=77) for bucket, found in self.log.bounds().items()}

    done = ran(source, config, LogRoundSettings(most=2), log=Dated(opened(source)))
    assert (done.left, done.left_at) == (1, 77)


@pytest.mark.parametrize("name", [None, "mine"])
def test_tasks_have_the_rounds_name(source: LinesTable, config: LakeConfig, name: str | None) -> None:
    source.append(1)
    _, tasks = planned(source, config, name=name)
    assert {task.table for task in tasks} == {name or "tests.t"}


def test_a_round_needs_a_pipeline(source: LinesTable, config: LakeConfig) -> None:
    with pytest.raises(ConfigError, match=r"^db\.t: a round from a log needs a pipeline"):
        LogRound(opened(source), replace(config, pipeline=None))


@pytest.mark.parametrize(
    ("method", "doing", "fix"),
    [
        ("bounds", "the log of t was read", "Check the source's options"),
        ("plan", "a round of t was planned", "Check lake.warehouse"),
    ],
)
def test_a_log_that_refuses_is_named(source: LinesTable, config: LakeConfig, method: str, doing: str, fix: str) -> None:
    source.append(1)
    error = FileNotFoundError(2, "No such file", "/gone")
    with pytest.raises(StorageError, match=f"^/gone: the storage refused while {doing}") as caught:
        planned(source, config, log=Changed(opened(source), method, error))
    assert fix in str(caught.value)


def test_one_failed_task_fails_the_round(source: LinesTable, config: LakeConfig) -> None:
    """Whichever it is: the others' rows would move the table beyond its rows."""
    source.append(1, 2, 3, 4)
    made, tasks = planned(source, config, log=CutLog(opened(source)))
    answers = [run_log_task(task) for task in tasks]
    assert len(answers) == 2
    before = version(config)
    error = StorageError("the source did not answer")
    with pytest.raises(StorageError, match="did not answer"):
        made.finish([answers[0], LogAnswer(answers[1].table, error=error, index=answers[1].index)])
    assert version(config) == before
    assert ran(source, config).rows == 4


def test_two_answers_of_one_task_are_not_published(source: LinesTable, config: LakeConfig) -> None:
    """An engine that ran a task twice, and told both: its rows would be there twice."""
    source.append(1, 2, 3, 4)
    made, tasks = planned(source, config, log=CutLog(opened(source)))
    before = version(config)
    with pytest.raises(StorageError, match="two answers for one task"):
        made.finish([run_log_task(task) for task in (*tasks, tasks[0])])
    assert version(config) == before
    assert ran(source, config).rows == 4


@pytest.mark.parametrize(
    ("error", "on_expired", "told"),
    [
        (OffsetsExpired("offsets 0 to 1 expired"), OnExpired.FAIL, "^offsets 0 to 1 expired$"),
        (OffsetsExpired("offsets 0 to 1 expired", gone={"0": [(0, 1)]}), OnExpired.SKIP, "The next round skips them"),
        (OffsetsExpired("offsets 0 to 1 expired"), OnExpired.SKIP, "^offsets 0 to 1 expired$"),
        (StorageError("not now"), OnExpired.SKIP, "^not now$"),
    ],
)
def test_offsets_that_expire_while_a_task_reads_are_skipped_by_the_next_round(
    source: LinesTable, config: LakeConfig, error: Exception, on_expired: OnExpired, told: str
) -> None:
    source.append(1)
    with pytest.raises((OffsetsExpired, StorageError), match=told):
        ran(source, config, LogRoundSettings(on_expired=on_expired), log=Changed(opened(source), "read 0", error))


def test_a_log_that_expired_whole_leaves_its_record_too(source: LinesTable, config: LakeConfig) -> None:
    source.append(1, 2)
    ran(source, config)
    source.append(3)
    source.expire(below=3)
    done = ran(source, config, LogRoundSettings(on_expired=OnExpired.SKIP))
    assert (done.outcome, done.rows, done.end["0"]) == (RoundOutcome.PUBLISHED, 0, 3)
    watermark = pipelines.show(open_lake(config).current_state(), "tests.t")
    assert watermark is not None
    assert watermark.token.content == 'skipped:{"0":[2,3]}'
    assert ran(source, config).outcome is None


@pytest.mark.parametrize(("ours", "asked"), [(4, [5]), (5, []), (6, [])])
def test_a_fence_is_raised_where_the_lake_has_a_higher_one(
    source: LinesTable, config: LakeConfig, ours: int, asked: list[int]
) -> None:
    source.append(1)
    ran(source, config, LogRoundSettings(fence=5))
    source.append(2)
    found: list[int] = []

    def raise_fence(highest: int) -> int:
        found.append(highest)
        return highest + 2

    ran(source, config, LogRoundSettings(fence=ours), raise_fence=raise_fence)
    watermark = pipelines.show(open_lake(config).current_state(), "tests.t")
    assert watermark is not None
    assert (found, watermark.token.fence) == (asked, 7 if asked else ours)


@pytest.mark.parametrize("fence", [0, 3])
def test_a_fence_is_not_raised_where_the_lake_has_none(source: LinesTable, config: LakeConfig, fence: int) -> None:
    source.append(1)

    def raise_fence(highest: int) -> int:
        raise AssertionError(highest)

    ran(source, config, LogRoundSettings(fence=fence), raise_fence=raise_fence)


def test_tasks_are_told_the_horizons_of_both_tables(source: LinesTable, config: LakeConfig) -> None:
    source.append(1)
    source.append_raw("poison")
    ran(source, config, DEAD)
    source.append(2)
    source.append_raw("poison")
    later = host_time() + 60_000
    _horizon(config, later)
    _, [task] = planned(source, config, DEAD)
    assert (task.attempts_after, task.dead_letter_attempts_after) == (later, 0)
    _, [plain] = planned(source, config)
    assert (plain.attempts_after, plain.dead_letters, plain.dead_letter_attempts_after) == (later, None, 0)
    assert (task.policy, plain.policy) == (OnBadRecordPolicy.DEAD_LETTER, OnBadRecordPolicy.FAIL)
    _horizon(replace(config, table=dead_letter_table(config.table)), later + 5)
    _, [both] = planned(source, config, DEAD)
    assert (both.attempts_after, both.dead_letter_attempts_after) == (later, later + 5)
    made: list[int | None] = []

    class Factory:
        write_result_serializer = both.dead_letters.write_result_serializer

        def create_writer(self, context: WriterInitContext) -> Any:
            made.append(attempt_began_at(context.attempt))
            return both.dead_letters.create_writer(context)

    assert run_log_task(replace(both, dead_letters=Factory())).bad == 1
    assert made == [later + 5]


def _horizon(config: LakeConfig, at: int) -> None:
    lake = open_lake(config)
    table = lake.load_table()
    raise_horizon(lake.tiering_factory(table), table.table_uuid, at)


def test_no_task_of_a_merge_is_left_for_later(source: LinesTable, config: LakeConfig) -> None:
    """Each has the newest of its keys from all that it reads."""
    source.append(1, 2, 3, 4)
    source.append(10, bucket=1)
    log = KeyedLog.of(CutLog(opened(source)), ("id",), None)
    _, tasks = planned(source, config, LogRoundSettings(within=7.0), log=log)
    assert {task.within for task in tasks} == {None}


def test_without_bad_records_nothing_is_published_beside_the_table(source: LinesTable, config: LakeConfig) -> None:
    source.append(1)
    ran(source, config, DEAD)
    beside = replace(config, table=dead_letter_table(config.table))
    first = version(beside)
    source.append(2)
    assert ran(source, config, DEAD).bad == 0
    assert version(beside) == first
    source.append_raw("poison")
    assert ran(source, config, DEAD).bad == 1
    assert version(beside) != first


def test_a_round_whose_plan_fails_is_closed(
    source: LinesTable, config: LakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.append(1)
    closed: list[object] = []
    monkeypatch.setattr(TieringRound, "close", lambda self: closed.append(self))
    for error in (StorageError("not now"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            planned(source, config, log=Changed(opened(source), "plan", error))
    assert len(closed) == 2


def test_a_round_that_another_overtook_is_stale(source: LinesTable, config: LakeConfig) -> None:
    source.append(1)
    slow, tasks = planned(source, config)
    answers = [run_log_task(task) for task in tasks]
    assert not slow._moved_on()
    source.append(2)
    quick = ran(source, config)
    assert slow._moved_on()
    with pytest.raises(Stale, match=r"^db\.t: another driver published while this round ran"):
        slow.finish(answers)
    assert (quick.rows, version(config)) == (2, quick.snapshot_id)


def test_a_round_that_another_overtook_beside_the_table_is_stale(
    source: LinesTable, config: LakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other was killed between its two commits, so only the dead letters moved on."""
    source.append_raw("poison")
    slow, tasks = planned(source, config, DEAD)
    answers = [run_log_task(task) for task in tasks]
    source.append(2)
    with monkeypatch.context() as patch:

        def killed(_: str) -> None:
            raise KeyboardInterrupt

        patch.setattr(log_round, "failpoint", killed)
        with pytest.raises(KeyboardInterrupt):
            ran(source, config, DEAD)
    with pytest.raises(Stale, match="another driver published"):
        slow.finish(answers)
    assert ran(source, config, DEAD).rows == 1
    letters = list(scan_dead_letters(config) or ())
    assert [letter.record.value for letter in letters] == [b"poison"]


@pytest.mark.parametrize("error", [Gap("epoch 5 comes after 3"), TokenMismatch("another content")])
@pytest.mark.parametrize("when", ["begin", "commit_messages"])
@pytest.mark.parametrize("policy", [LogRoundSettings(), DEAD])
def test_a_refusal_is_a_fault_where_nobody_moved_on(
    source: LinesTable,
    config: LakeConfig,
    monkeypatch: pytest.MonkeyPatch,
    error: Refused,
    when: str,
    policy: LogRoundSettings,
) -> None:
    source.append(1)

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(TieringRound, when, refuse)
    with pytest.raises(type(error)) as caught:
        ran(source, config, policy)
    assert caught.value is error
    monkeypatch.setattr(LogRound, "_moved_on", lambda self: True)
    with pytest.raises(Stale):
        ran(source, config, policy)


def _staged(config: LakeConfig, table: str) -> int:
    return sum(1 for _ in (Path(config.warehouse) / "db" / table).rglob("part-*"))


def test_dead_letters_of_a_round_that_fails_are_deleted_unless_they_may_be_published(
    source: LinesTable, config: LakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.append_raw("poison")
    source.append(1, 2, 3)
    for publishes in (False, True):
        made, tasks = planned(source, config, DEAD)
        answers = [run_log_task(task) for task in tasks]
        assert (_staged(config, "t"), _staged(config, "t__dead_letters")) == (1, 1)
        if publishes:
            with monkeypatch.context() as patch:
                patch.setattr(log_round, "failpoint", lambda _: (_ for _ in ()).throw(StorageError("no answer")))
                with pytest.raises(StorageError, match="no answer"):
                    made.finish(answers)
        else:
            made.abort(answers)
        assert (_staged(config, "t"), _staged(config, "t__dead_letters")) == (0, int(publishes))
    assert [letter.record.value for letter in scan_dead_letters(config) or ()] == [b"poison"]


def test_dead_letters_that_became_rows_are_told_before_anything_is_published(
    source: LinesTable, config: LakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay would append them twice."""
    source.append_raw("poison")
    with monkeypatch.context() as patch:
        patch.setattr(log_round, "failpoint", lambda _: (_ for _ in ()).throw(StorageError("no answer")))
        with pytest.raises(StorageError, match="no answer"):
            ran(source, config, DEAD)

    class Mended(Changed):
        def decode(self, records: Sequence[BadRecord], **options: Any) -> Iterator[pa.RecordBatch]:
            return iter(())

    with pytest.raises(ConfigError, match="1 dead letters of a killed round can be decoded and stored now"):
        planned(source, config, DEAD, log=Mended(opened(source)))
    assert ran(source, config, DEAD).end == LogOffsets({"0": 1, "1": 0})


def test_a_source_that_was_made_anew_is_told_as_it_was_and_as_it_is(source: LinesTable, config: LakeConfig) -> None:
    source.append(1)
    log = opened(source)
    made, tasks = planned(source, config, log=log, look_again=lambda: replace(log.table, table_id="anew"))
    before = version(config)
    with pytest.raises(TableChanged) as caught:
        made.finish([run_log_task(task) for task in tasks])
    ids = f"its id was {log.table.table_id!r} and is 'anew'"
    assert str(caught.value) == (
        f"db.t: the source's table 't' was recreated while it was read: {ids}. Nothing was published."
    )
    assert version(config) == before


def test_tasks_that_a_bucket_needs_to_get_on_have_no_limit(source: LinesTable, config: LakeConfig) -> None:
    source.append(1, 2, 3, 4)
    source.append(10, bucket=1)
    _, tasks = planned(source, config, LogRoundSettings(within=7.0), log=CutLog(opened(source)))
    assert {(split.bucket, split.start): task.within for task in tasks for split in task.splits} == {
        ("0", 0): None,
        ("0", 2): 7.0,
        ("1", 0): None,
    }
    assert [task.index for task in tasks] == [0, 1, 2]
