"""The horizon and the collector, on a table in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from laketier.maintenance.orphans import DEFAULT_GRACE, collect_orphans, list_orphans
from laketier.spi import (
    COLLECTOR,
    Collected,
    CorruptTable,
    LakeMaintenance,
    OrphanFile,
    RolledBack,
    Token,
    UnknownOutcome,
    Watermark,
    attempt_began_at,
    new_attempt_id,
)
from laketier.tiering import RoundOutcome, TieringRound
from laketier.tiering.horizon import horizon_of, raise_horizon
from memory_lake import MemoryFactory, MemoryState, MemoryTable

HOUR = 3_600_000


@dataclass
class Lake(LakeMaintenance):
    """A storage whose orphans are what the test says, one list for each look."""

    table: MemoryTable
    looks: list[list[OrphanFile]]
    asked: list[int] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    def maintenance(self, info: Any) -> LakeMaintenance:
        return self

    def tiering_factory(self, info: Any) -> MemoryFactory:
        return MemoryFactory(self.table)

    def orphans(self, modified_before: int) -> Sequence[OrphanFile]:
        self.asked.append(modified_before)
        return self.looks.pop(0)

    def remove_orphans(self, orphans: Sequence[OrphanFile]) -> Sequence[OrphanFile]:
        self.removed += [file.path for file in orphans]
        return orphans


def old(*paths: str) -> list[OrphanFile]:
    return [OrphanFile(path, 1, 0) for path in paths]


def collect(lake: Lake, **more: Any) -> Any:
    return collect_orphans(lake, lake.table.info, **more)  # type: ignore[arg-type]


def test_attempts_say_when_they_began() -> None:
    before = time.time_ns() // 1_000_000
    attempt = new_attempt_id()
    assert before <= attempt_began_at(attempt) <= time.time_ns() // 1_000_000
    assert (len(attempt), attempt != new_attempt_id()) == (32, True)
    assert [attempt_began_at(other) for other in ("a", "", "x" * 32)] == [0, 0, 0]


def test_a_horizon_never_goes_back() -> None:
    table = MemoryTable()
    factory = MemoryFactory(table)
    assert [raise_horizon(factory, table.uuid, horizon) for horizon in (100, 50, 200)] == [100, 100, 200]
    assert horizon_of(factory.create_committer(None).open()) == 200  # type: ignore[arg-type]


def test_a_table_that_never_collected_has_no_horizon() -> None:
    assert horizon_of(MemoryTable().committer().open()) is None


def test_a_horizon_that_is_no_time_is_not_passed_over() -> None:
    table = MemoryTable(watermarks={COLLECTOR: Watermark(Token(COLLECTOR, "r", 0, content="soon"), "c")})
    with pytest.raises(CorruptTable, match="soon"):
        horizon_of(table.committer().open())


def test_after_a_rollback_rounds_of_an_hour_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can say what the horizon was."""
    table = MemoryTable()
    state = table.committer().open()

    def rolled_back(self: object, pipeline: str) -> None:
        raise RolledBack("restored")

    monkeypatch.setattr(type(state), "watermark", rolled_back)
    horizon = horizon_of(state)
    assert horizon is not None
    assert abs(time.time_ns() // 1_000_000 - HOUR - horizon) < 60_000


def test_the_first_horizon_after_a_rollback_is_no_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a collection with a long grace period lets rounds through whose files an earlier one, with a short grace
    period, has deleted."""
    table = MemoryTable()
    plain = MemoryState.watermark

    def rolled_back(self: MemoryState, pipeline: str) -> Watermark | None:
        if not table.version:
            raise RolledBack("restored")
        return plain(self, pipeline)

    monkeypatch.setattr(MemoryState, "watermark", rolled_back)
    now = time.time_ns() // 1_000_000
    assert abs(now - HOUR - raise_horizon(MemoryFactory(table), table.uuid, now - 72 * HOUR)) < 60_000


def test_nothing_is_found_nothing_is_committed() -> None:
    table = MemoryTable()
    assert collect(Lake(table, [[]])).horizon is None
    assert table.version == 0


def test_listing_changes_nothing() -> None:
    lake = Lake(MemoryTable(), [old("b", "a")])
    assert [file.path for file in list_orphans(lake, lake.table.info).orphans] == ["a", "b"]  # type: ignore[arg-type]
    assert (lake.removed, lake.table.version) == ([], 0)


def test_what_was_published_meanwhile_is_kept() -> None:
    lake = Lake(MemoryTable(), [old("a", "b"), old("b", "c")])
    found = collect(lake)
    assert lake.removed == ["b"]
    assert [file.path for file in found.orphans] == ["a", "b"]
    assert [file.path for file in found.removed] == ["b"]


@pytest.mark.parametrize(("grace", "margin"), [(DEFAULT_GRACE, HOUR), (timedelta(minutes=10), 300_000)])
def test_the_horizon_is_later_than_what_is_deleted(grace: timedelta, margin: int) -> None:
    """By a margin: attempts are dated by executors' clocks, files by the storage's."""
    lake = Lake(MemoryTable(), [old("a"), old("a")])
    horizon = collect(lake, grace=grace).horizon
    assert [horizon - before for before in lake.asked] == [margin, margin]


def test_a_horizon_that_may_not_be_set_deletes_nothing() -> None:
    lake = Lake(MemoryTable(before=[OSError("no")] * 50), [old("a"), old("a")])
    with pytest.raises(UnknownOutcome):
        collect(lake)
    assert lake.removed == []


@pytest.mark.parametrize("token", [Token("p", "r", 0), None])
def test_a_round_from_before_the_horizon_is_refused_and_discarded(token: Token | None) -> None:
    table = MemoryTable()
    staged = table.stage(1, attempt=new_attempt_id())
    raise_horizon(MemoryFactory(table), table.uuid, time.time_ns() // 1_000_000 + 5)
    with pytest.raises(Collected, match="--older-than"):
        TieringRound(MemoryFactory(table), token=token).commit([staged])
    assert table.discarded == [file.path for file in staged.files]
    table.stage(0)
    later = f"{attempt_began_at(new_attempt_id()) + 1_000:012x}{'0' * 20}"
    again = TieringRound(MemoryFactory(table), token=token).commit([table.stage(1, attempt=later)])
    assert again.outcome is RoundOutcome.PUBLISHED


def test_a_round_without_files_has_nothing_to_lose() -> None:
    table = MemoryTable()
    raise_horizon(MemoryFactory(table), table.uuid, time.time_ns() // 1_000_000 + 60_000)
    assert TieringRound(MemoryFactory(table), token=Token("p", "r", 0)).commit([]).outcome is RoundOutcome.PUBLISHED
