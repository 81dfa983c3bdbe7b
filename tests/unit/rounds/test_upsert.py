"""Rounds with a primary key against a format in memory: whatever happens, the table is what the log comes to."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changes import ROWS, Change, ChangeLog, applied
from laketier.kit.failpoints import observed
from laketier.rounds import LogAnswer, LogTask, OnBadRecordPolicy, next_range, run_log_task, splits, upsert
from laketier.rounds.upsert import plan_merges
from laketier.spi import (
    BucketSpec,
    IncompatibleData,
    LogOffsets,
    Overtaken,
    PluginBroken,
    ScanPlan,
    ScanRequest,
    Token,
    UnknownOutcome,
    Watermark,
    WriteMode,
)
from laketier.tiering import RoundOutcome, RoundResult, TieringRound, failpoints
from laketier.tiering.retries import RetryPolicy
from memory_lake import MemoryFactory, MemorySource, MemoryTable

FAST = RetryPolicy(conflicts=3, unknowns=2, first_wait_seconds=0.0, longest_wait_seconds=0.0)
BUCKETS = BucketSpec(3, ("id",))


class Killed(BaseException):
    """The driver is gone."""


@dataclass
class Keyed:
    """A table that follows a log, as `LogRound` does it."""

    log: ChangeLog
    table: MemoryTable
    source: MemorySource = field(init=False)
    tasks: int = 0

    def __post_init__(self) -> None:
        self.source = MemorySource(self.table)

    @classmethod
    def of(cls, log: ChangeLog, buckets: BucketSpec | None = None) -> Keyed:
        return cls(log, MemoryTable(schema=ROWS, primary_key=("id",), buckets=buckets))

    @property
    def committed(self) -> LogOffsets | None:
        mark = self.table.watermarks.get("p")
        return None if mark is None or mark.token.source is None else LogOffsets.from_text(mark.token.source.end)

    def staged(self, most: int | None = None, epoch: int | None = None) -> tuple[TieringRound, list[LogAnswer]]:
        """``epoch``: one that may be there already, read again."""
        mark = self.table.watermarks.get("p")
        committed = self.committed
        if epoch is None:
            epoch = 0 if mark is None else mark.token.epoch + 1
            upcoming = next_range(committed, self.log.bounds(), most=most)
            wanted, source = upcoming.wanted, upcoming.source
        else:
            assert mark is not None
            source = mark.token.source
            assert source is not None
            end, start = LogOffsets.from_text(source.end), LogOffsets.from_text(source.start)
            wanted = replace(
                next_range(None, self.log.bounds()).wanted, start=LogOffsets({b: start.get(b, 0) for b in end}), end=end
            )
        factory = MemoryFactory(self.table)
        tiering = TieringRound(
            factory, token=Token("p", "run", epoch, source=source), mode=WriteMode.UPSERT, policy=FAST
        )
        tiering.begin()
        merges = plan_merges(self.source, self.table.info, self.log.table, self.log.plan(wanted), tiering.base_snapshot)
        self.tasks = len(merges)
        tasks = [
            LogTask("t", self.log, splits, factory, index, OnBadRecordPolicy.DROP, merge=merge)
            for index, (splits, merge) in enumerate(merges)
        ]
        answers = [run_log_task(task) for task in tasks]
        for answer in answers:
            if answer.error is not None:
                raise answer.error
        return tiering, answers

    def commit(self, tiering: TieringRound, answers: list[LogAnswer]) -> RoundResult:
        return tiering.commit_messages([answer.message for answer in answers if answer.message is not None])

    def round(self, **how: int) -> RoundResult:
        return self.commit(*self.staged(**how))

    @property
    def rows(self) -> list[tuple[int, str]]:
        read = self.table.read()
        return sorted(zip(read["id"].to_pylist(), read["name"].to_pylist(), strict=True))

    @property
    def expected(self) -> list[tuple[int, str]]:
        return sorted(applied(self.log.until(self.committed or {})).items())


OPS = st.sampled_from(["+I", "+U", "-U", "-D", "+U"])
CHANGES = st.lists(st.tuples(OPS, st.integers(0, 9), st.text("abc", max_size=2)), max_size=12)
POINTS = st.sampled_from(failpoints.PROTOCOL)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("round"), CHANGES, st.integers(1, 9)),
        st.tuples(st.just("crash"), CHANGES, POINTS),
        st.tuples(st.just("replay"), st.just([]), st.just(None)),
        st.tuples(st.just("lost answer"), CHANGES, st.booleans()),
        st.tuples(st.just("foreign"), CHANGES, st.sampled_from(["compacts", "commits nothing"])),
        st.tuples(st.just("overtaken"), CHANGES, st.sampled_from(["compacts", "commits nothing", "is a zombie"])),
    ),
    max_size=12,
)
LAYOUTS = st.sampled_from(
    [
        (None, 1, None),
        (None, 2, None),
        (BUCKETS, 2, None),
        (BUCKETS, 3, BUCKETS),
        (BUCKETS, 5, BucketSpec(5, ("id",))),
    ]
)
_NAMES = itertools.count()


def weigh_tasks(patch: pytest.MonkeyPatch, weight: int) -> None:
    for module in (splits, upsert):
        patch.setattr(module, "WEIGHT_OF_A_TASK", weight)


def compact(table: MemoryTable) -> None:
    """Somebody else puts all rows into one file, of no bucket."""
    rows = table.read()
    staged = replace(table, buckets=None).stage_rows(rows, f"foreign-{next(_NAMES)}")
    table.committer("foreign", WriteMode.UPSERT).land([replace(staged, replaced=tuple(table.files))], None)


def commit_nothing(table: MemoryTable) -> None:
    table.committer("foreign").land([], Watermark(Token("other", "r", 0), "foreign"))


@settings(deadline=None, max_examples=60)
@given(LAYOUTS, STEPS, st.integers(1, 20))
def test_the_table_is_what_the_log_comes_to(
    layout: tuple[BucketSpec | None, int, BucketSpec | None], steps: list[tuple[str, list[Change], object]], weight: int
) -> None:
    """Change logs by cuts of rounds, crashes, lost answers, replays and other writers."""
    buckets, log_buckets, aligned = layout
    keyed = Keyed.of(ChangeLog.of(log_buckets, aligned), buckets)
    foreign: dict[str, Callable[[MemoryTable], None]] = {
        "compacts": compact,
        "commits nothing": commit_nothing,
    }
    with pytest.MonkeyPatch.context() as patch:
        weigh_tasks(patch, weight)
        for what, changes, how in steps:
            keyed.log.append(*changes)
            before, version = keyed.committed, keyed.table.version
            match what:
                case "round":
                    assert keyed.round(most=how).outcome is RoundOutcome.PUBLISHED  # type: ignore[arg-type]
                case "crash":
                    with observed(_killed_at(str(how))), suppress(Killed):
                        keyed.round()
                    landed = how not in (failpoints.ROUND_OPENED, failpoints.PUBLISH_BEFORE)
                    assert (keyed.table.version > version) == landed
                case "replay" if before is not None:
                    epoch = keyed.table.watermarks["p"].token.epoch
                    assert keyed.round(epoch=epoch).outcome is RoundOutcome.ALREADY_THERE
                case "lost answer":
                    (keyed.table.after if how else keyed.table.before).append(TimeoutError("no answer"))
                    assert keyed.round().outcome in (RoundOutcome.RECOVERED, RoundOutcome.PUBLISHED)
                case "foreign":
                    foreign[str(how)](keyed.table)
                case "overtaken":
                    zombie = how == "is a zombie"
                    mine, answers = keyed.staged()
                    keyed.round() if zombie else foreign[str(how)](keyed.table)
                    if zombie:
                        assert keyed.commit(mine, answers).outcome is RoundOutcome.ALREADY_THERE
                    else:
                        with pytest.raises(Overtaken):
                            keyed.commit(mine, answers)
            assert keyed.rows == keyed.expected, (what, how)
        keyed.round()
        assert keyed.rows == keyed.expected
        assert len(keyed.rows) == len(dict(keyed.rows))


def _killed_at(point: str) -> Callable[[str], None]:
    def observer(name: str) -> None:
        if name == point:
            raise Killed

    return observer


def test_files_without_a_touched_key_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    keyed = Keyed.of(ChangeLog.of())
    for key in (1, 2, 3):
        keyed.log.append(("+I", key, "a"))
        keyed.round()
    before = list(keyed.table.files)
    keyed.log.append(("-U", 1, "a"), ("+U", 2, "b"), ("-D", 9, ""))
    done = keyed.round()
    assert keyed.source.reads == [before[1]], "the others were not even read whole"
    assert [name for name in before if name in keyed.table.files] == [before[0], before[2]]
    assert (done.rows, keyed.rows) == (1, [(1, "a"), (2, "b"), (3, "a")])


def test_deletes_alone_replace_a_file_by_none() -> None:
    keyed = Keyed.of(ChangeLog.of())
    keyed.log.append(("+I", 1, "a"))
    keyed.round()
    keyed.log.append(("-D", 1, ""))
    done = keyed.round()
    assert (done.outcome, done.rows, done.files, keyed.rows) == (RoundOutcome.PUBLISHED, 0, 0, [])
    assert not keyed.table.files


def test_tasks_own_buckets_that_no_other_has(monkeypatch: pytest.MonkeyPatch) -> None:
    weigh_tasks(monkeypatch, 2)
    keyed = Keyed.of(ChangeLog.of(2), BUCKETS)
    keyed.log.append(*(("+I", key, "a") for key in range(12)))
    keyed.round()
    changes = keyed.log.plan(next_range(None, keyed.log.bounds()).wanted)
    merges = [merge for _, merge in plan_merges(keyed.source, keyed.table.info, keyed.log.table, changes, 1)]
    assert len(merges) == 3
    owned = Counter(bucket for merge in merges if merge.share is not None for bucket in merge.share.owned)
    assert owned == {0: 1, 1: 1, 2: 1}
    files = Counter(name for merge in merges for split in merge.splits for name in split.files)
    assert files == dict.fromkeys(keyed.table.files, 1)


def test_a_file_of_no_bucket_has_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    weigh_tasks(monkeypatch, 2)
    keyed = Keyed.of(ChangeLog.of(2), BUCKETS)
    keyed.log.append(*(("+I", key, "a") for key in range(12)))
    keyed.round()
    assert keyed.tasks == 3
    compact(keyed.table)
    keyed.log.append(*(("+U", key, "b") for key in range(12)))
    keyed.round()
    assert keyed.tasks == 1
    assert keyed.rows == [(key, "b") for key in range(12)]


def test_bad_records_are_told_once_though_all_tasks_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    weigh_tasks(monkeypatch, 2)
    keyed = Keyed.of(ChangeLog.of(2), BUCKETS)
    keyed.log.append(*(("+I", key, "a") for key in range(6)), ("bad", 1, ""), ("bad", 2, ""))
    _, answers = keyed.staged()
    assert len(answers) == 3
    assert sum(answer.bad for answer in answers) == 2


def test_aligned_tasks_read_their_own_splits_only(monkeypatch: pytest.MonkeyPatch) -> None:
    weigh_tasks(monkeypatch, 4)
    keyed = Keyed.of(ChangeLog.of(aligned=BUCKETS), BUCKETS)
    keyed.log.append(*(("+I", key, "a") for key in range(12)))
    changes = keyed.log.plan(next_range(None, keyed.log.bounds()).wanted)
    merges = plan_merges(keyed.source, keyed.table.info, keyed.log.table, changes, None)
    assert len(merges) > 1
    assert sorted(split.start for own, _ in merges for split in own) == sorted(split.start for split in changes)
    for own, merge in merges:
        assert merge.share is not None
        assert {int(split.bucket) for split in own} == set(merge.share.owned)


def test_a_log_whose_rows_are_in_other_buckets_than_it_says_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would be written by a task that does not know the file with their key."""
    weigh_tasks(monkeypatch, 1)
    lies = ChangeLog.of(3).without(buckets=BUCKETS)
    for bucket, changes in lies.entries.items():
        changes.extend(("+I", key, bucket) for key in range(4))
    with pytest.raises(IncompatibleData, match="lies in another bucket of the lake"):
        Keyed.of(lies, BUCKETS).round()


def test_the_newest_change_wins_whatever_the_order_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    keyed = Keyed.of(ChangeLog.of())
    keyed.log.append(*(("+U", 1, str(number)) for number in range(9)))
    plan = ChangeLog.plan
    monkeypatch.setattr(ChangeLog, "plan", lambda log, wanted: list(reversed(plan(log, wanted))))
    keyed.round()
    assert keyed.rows == [(1, "8")]


def test_a_round_that_was_overtaken_deletes_what_it_staged_and_is_merged_anew() -> None:
    keyed = Keyed.of(ChangeLog.of())
    keyed.log.append(("+I", 1, "a"))
    keyed.round()
    keyed.log.append(("+U", 1, "b"))
    keyed.table.rivals.append(lambda: compact(keyed.table))
    with pytest.raises(Overtaken, match="the table changed while rows were merged: from snapshot 1 to 2"):
        keyed.round()
    assert len(keyed.table.discarded) == 1
    assert keyed.rows == [(1, "a")]
    keyed.round()
    assert keyed.rows == [(1, "b")]


def test_a_table_that_moves_on_while_a_round_is_planned_is_planned_again() -> None:
    keyed = Keyed.of(ChangeLog.of())
    keyed.log.append(("+I", 1, "a"))

    def opened(point: str) -> None:
        if point == failpoints.ROUND_OPENED:
            commit_nothing(keyed.table)

    with observed(opened), pytest.raises(Overtaken, match="while a round was planned: from snapshot None to 1"):
        keyed.round()
    keyed.round()
    assert keyed.rows == [(1, "a")]


def test_after_an_unknown_outcome_nothing_is_deleted() -> None:
    keyed = Keyed.of(ChangeLog.of())
    keyed.log.append(("+I", 1, "a"))
    keyed.round()
    keyed.log.append(("+U", 1, "b"))
    tiering, answers = keyed.staged()
    keyed.table.before.append(TimeoutError("no answer"))
    keyed.table.before.append(None)
    keyed.table.rivals.append(lambda: commit_nothing(keyed.table))
    with pytest.raises(UnknownOutcome) as told:
        keyed.commit(tiering, answers)
    assert isinstance(told.value.__cause__, Overtaken)
    assert keyed.table.discarded == [], "the first attempt may yet land"


def test_an_unknown_outcome_that_did_not_land_is_tried_again() -> None:
    keyed = Keyed.of(ChangeLog.of())
    keyed.log.append(("+I", 1, "a"))
    keyed.table.before += [TimeoutError("no answer")] * 2
    with pytest.raises(UnknownOutcome):
        keyed.round()
    assert keyed.table.discarded == []


def test_a_round_that_merges_begins_before_its_tasks() -> None:
    table = MemoryTable(schema=ROWS, primary_key=("id",))
    tiering = TieringRound(MemoryFactory(table), token=Token("p", "run", 0), mode=WriteMode.UPSERT)
    with pytest.raises(ValueError, match="begins before its tasks"):
        _ = tiering.base_snapshot
    with pytest.raises(ValueError, match="begins before its tasks"):
        tiering.commit([])


def test_a_format_that_does_not_name_files_is_told() -> None:
    class Silent(MemorySource):
        def plan(self, request: ScanRequest) -> ScanPlan:
            found = super().plan(request)
            return replace(found, splits=tuple(replace(split, files=()) for split in found.splits))

    keyed = Keyed.of(ChangeLog.of())
    keyed.log.append(("+I", 1, "a"))
    keyed.round()
    keyed.source = Silent(keyed.table)
    keyed.log.append(("-D", 1, ""))
    with pytest.raises(PluginBroken, match="does not say which files it reads"):
        keyed.round()
