"""A round from a log, by what it tells its tasks and its caller. Real tables of localfile, and logs of JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laketier.config import LakeConfig
from laketier.registry import configure, open_lake, open_log_source
from laketier.rounds import LogAnswer, LogRound, LogRoundSettings, OnBadRecordPolicy, OnExpired, run_log_task
from laketier.spi import (
    BucketBounds,
    ConfigError,
    LogOffsets,
    LogRange,
    LogSplit,
    OffsetsExpired,
    StorageError,
    TableLog,
    host_time,
)
from laketier.tiering import RoundOutcome, pipelines
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


@pytest.mark.parametrize(
    ("error", "on_expired", "told"),
    [
        (OffsetsExpired("offsets 0 to 1 expired"), OnExpired.FAIL, "^offsets 0 to 1 expired$"),
        (OffsetsExpired("offsets 0 to 1 expired"), OnExpired.SKIP, "The next round skips them"),
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


def test_tasks_are_told_the_horizons_of_both_tables(source: LinesTable, config: LakeConfig) -> None:
    source.append(1)
    source.append_raw("poison")
    ran(source, config, DEAD)
    source.append(2)
    source.append_raw("poison")
    later = host_time() + 60_000
    lake = open_lake(config)
    table = lake.load_table()
    raise_horizon(lake.tiering_factory(table), table.table_uuid, later)
    _, [task] = planned(source, config, DEAD)
    assert (task.attempts_after, task.dead_letter_attempts_after) == (later, 0)
    _, [plain] = planned(source, config)
    assert (plain.attempts_after, plain.dead_letters, plain.dead_letter_attempts_after) == (later, None, 0)
    assert (task.policy, plain.policy) == (OnBadRecordPolicy.DEAD_LETTER, OnBadRecordPolicy.FAIL)


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
