"""Rounds with a primary key against the formats themselves: whatever happens, the table is what the log comes to."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from changes import ROWS, Change, ChangeLog, applied
from depth import sizes
from laketier.kit.failpoints import observed
from laketier.registry import format_names, load_format
from laketier.rounds import LogAnswer, LogTask, OnBadRecordPolicy, next_range, run_log_task, splits, upsert
from laketier.rounds.upsert import plan_merges
from laketier.spi import (
    BucketSpec,
    Feature,
    LogOffsets,
    Overtaken,
    StorageError,
    Token,
    WriteMode,
    support_of,
)
from laketier.tiering import RoundOutcome, TieringRound, failpoints
from laketier_conformance.failpoints import CountedFailpoints
from laketier_conformance.lake import QUICK, Lake, Table

FORMATS = [name for name in format_names() if support_of(load_format(name).features, Feature.UPSERT).full]
SCHEMA = ROWS.set(0, ROWS.field("id").with_nullable(False))


class Killed(BaseException):
    """The driver is gone."""


@dataclass(frozen=True)
class Follower:
    """A table that follows a log, as `LogRound` does it."""

    log: ChangeLog
    table: Table

    @property
    def committed(self) -> LogOffsets | None:
        mark = self.table.watermark()
        return None if mark is None or mark.token.source is None else LogOffsets.from_text(mark.token.source.end)

    def staged(self, again: bool = False) -> tuple[TieringRound, list[LogAnswer]]:
        """``again``: the epoch that is there already."""
        mark = self.table.watermark()
        epoch = 0 if mark is None else mark.token.epoch + (not again)
        upcoming = next_range(self.committed, self.log.bounds(), most=6)
        wanted, source = upcoming.wanted, upcoming.source
        if again and mark is not None and mark.token.source is not None:
            source = mark.token.source
            start, end = LogOffsets.from_text(source.start), LogOffsets.from_text(source.end)
            wanted = replace(wanted, start=LogOffsets({bucket: start.get(bucket, 0) for bucket in end}), end=end)
        token = Token("p", "run", epoch, source=source)
        factory = self.table.factory
        tiering = TieringRound(factory, token=token, mode=WriteMode.UPSERT, policy=QUICK)
        tiering.begin()
        base = tiering.base_snapshot
        merges = plan_merges(self.table.source, self.table.info, self.log.table, self.log.plan(wanted), base)
        answers = []
        for index, (own, merge) in enumerate(merges):
            task = LogTask("t", self.log, own, factory, index, OnBadRecordPolicy.DROP, merge=merge)
            answers.append(run_log_task(task))
            if (error := answers[-1].error) is not None:
                raise error
        return tiering, answers

    def commit(self, tiering: TieringRound, answers: list[LogAnswer]) -> RoundOutcome:
        return tiering.commit_messages([answer.message for answer in answers if answer.message is not None]).outcome

    def round(self, again: bool = False) -> RoundOutcome:
        return self.commit(*self.staged(again))

    def check(self, what: str) -> None:
        read = self.table.read()
        rows = sorted(zip(read["id"].to_pylist(), read["name"].to_pylist(), strict=True))
        assert rows == sorted(applied(self.log.until(self.committed or {})).items()), what


def _commit_nothing(table: Table) -> None:
    """Another pipeline, without a row."""
    mark = table.watermark("other")
    TieringRound(table.factory, token=Token("other", "r", 0 if mark is None else mark.token.epoch + 1)).commit([])


def _killed_at(point: str) -> Callable[[str], None]:
    def observer(name: str) -> None:
        if name == point:
            raise Killed

    return observer


def _points(format: str) -> list[str]:
    """All failpoints that a round which replaces files passes: the protocol's and the format's own."""
    passed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        follower = _follower(format, folder, bucketed=False)
        follower.log.append(("+I", 1, "a"))
        follower.round()
        follower.log.append(("+U", 1, "b"))
        with observed(passed.append):
            follower.round()
    return list(dict.fromkeys(passed))


def _follower(format: str, folder: str, bucketed: bool) -> Follower:
    lake = Lake(format, str(Path(folder, "lake")), {})
    buckets = None
    if bucketed and support_of(lake.plugin.features, Feature.BUCKETING).full:
        buckets = BucketSpec(3, ("id",), "iceberg" if format == "iceberg" else "fluss")
    return Follower(ChangeLog.of(2), lake.create(SCHEMA, buckets=buckets, primary_key=("id",)))


CHANGES = st.lists(
    st.tuples(st.sampled_from(["+I", "+U", "-U", "-D", "+U"]), st.integers(0, 7), st.text("abc", max_size=2)),
    max_size=8,
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["round", "crash", "crash", "replay", "lost answer", "foreign", "overtaken", "zombie"]),
        CHANGES,
        st.integers(0, 99),
    ),
    min_size=3,
    max_size=10,
)


@sizes("examples", 4, 12)
@pytest.mark.parametrize("format", FORMATS)
def test_the_table_is_what_the_log_comes_to(format: str, examples: int) -> None:
    points = _points(format)
    assert set(points) >= {failpoints.PUBLISH_BEFORE, failpoints.PUBLISH_AFTER}

    @settings(
        deadline=None,
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
        phases=[Phase.generate],
    )
    @given(st.booleans(), STEPS, st.integers(1, 9))
    def prove(bucketed: bool, steps: list[tuple[str, list[Change], int]], weight: int) -> None:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            for module in (splits, upsert):
                patch.setattr(module, "WEIGHT_OF_A_TASK", weight)
            follower = _follower(format, folder, bucketed)
            for what, changes, number in steps:
                follower.log.append(*changes)
                _step(follower, what, points[number % len(points)], patch)
                follower.check(what)
            while follower.committed is None or dict(follower.committed) != {
                bucket: each.latest for bucket, each in follower.log.bounds().items()
            }:
                follower.round()
                follower.check("the rest")

    prove()


@contextmanager
def _suppress_answer(why: str) -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        if why not in str(error):
            raise


def _step(follower: Follower, what: str, point: str, patch: pytest.MonkeyPatch) -> None:
    match what:
        case "round":
            assert follower.round() is RoundOutcome.PUBLISHED
        case "crash":
            # A task answers whatever ends it.
            with observed(_killed_at(point)), suppress(Killed), _suppress_answer(Killed.__name__):
                follower.round()
        case "replay" if follower.committed is not None:
            assert follower.round(again=True) is RoundOutcome.ALREADY_THERE
        case "lost answer":
            switches = CountedFailpoints(patch)
            switches.switch_on(f"{failpoints.PUBLISH_AFTER}=error@1")
            assert follower.round() is RoundOutcome.RECOVERED
            switches.switch_on("")
        case "foreign":
            _commit_nothing(follower.table)
        case "overtaken":
            mine = follower.staged()
            _commit_nothing(follower.table)
            with pytest.raises(Overtaken):
                follower.commit(*mine)
        case "zombie":
            mine = follower.staged()
            assert follower.round() is RoundOutcome.PUBLISHED
            assert follower.commit(*mine) is RoundOutcome.ALREADY_THERE
