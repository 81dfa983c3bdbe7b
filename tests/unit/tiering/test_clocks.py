"""Clocks that are days off, of the collector, the stager, the driver and the storage, on a table in memory.

`Storage` keeps the storage's dates of staged files, and deletes for real: a published file that is gone is lost rows.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from laketier.maintenance.orphans import Collection, collect_orphans
from laketier.spi import (
    COLLECTOR,
    Collected,
    ConfigError,
    LakeMaintenance,
    OrphanFile,
    RolledBack,
    Token,
    Watermark,
    WriteResult,
    attempt_began_at,
    host_time,
    new_attempt_id,
)
from laketier.spi.clocks import shifted
from laketier.spi.writer import LATEST
from laketier.tiering import RoundOutcome, TieringRound, pipelines
from laketier.tiering.horizon import horizon_of, lower_horizon, raise_horizon
from memory_lake import MemoryFactory, MemoryTable

DAY = 86_400_000
WRONG = (-10 * DAY, -DAY, -1_000, 0, 1_000, DAY, 10 * DAY)
NONE = timedelta(0)


def clock_at(moment: int) -> AbstractContextManager[None]:
    return shifted(moment - time.time_ns() // 1_000_000)


@dataclass
class Storage(LakeMaintenance):
    """A table, and its files with dates. ``now``: the storage's own time."""

    names: bool = True
    asks: bool = True
    now: int = field(default_factory=host_time)
    dates: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table = MemoryTable(time=(lambda: self.now) if self.asks else None)
        self.attempts: dict[str, str] = {}

    def stage(self, *rows: int, clock: int = 0, after: int = 0) -> WriteResult:
        """By a host whose clock is ``clock`` ahead of the storage's."""
        with clock_at(self.now + clock):
            attempt = new_attempt_id(after)
        self.now += 10
        result = self.table.stage(*rows, attempt=attempt)
        for file in result.files:
            self.dates[file.path], self.attempts[file.path] = self.now, attempt
        self.now += 10
        return result

    def collect(self, grace: timedelta = NONE, clock: int = 0) -> Collection:
        self.now += 10
        with clock_at(self.now + clock):
            return collect_orphans(self, self.table.info, grace=grace)  # type: ignore[arg-type]

    def begin(self, epoch: int = 0) -> TieringRound:
        tiering = TieringRound(MemoryFactory(self.table), token=Token("p", "r", epoch))
        tiering.begin()
        return tiering

    @property
    def lost(self) -> set[str]:
        return set(self.table.files) - set(self.dates)

    def maintenance(self, info: Any) -> LakeMaintenance:
        return self

    def tiering_factory(self, info: Any) -> MemoryFactory:
        return MemoryFactory(self.table)

    def orphans(self, modified_before: int) -> Sequence[OrphanFile]:
        return [
            OrphanFile(path, 1, at, attempt=self.attempts[path] if self.names else None)
            for path, at in self.dates.items()
            if path not in self.table.files and at < modified_before
        ]

    def remove_orphans(self, orphans: Sequence[OrphanFile]) -> Sequence[OrphanFile]:
        for file in orphans:
            del self.dates[file.path]
        return orphans


@pytest.mark.parametrize("stager", WRONG)
@pytest.mark.parametrize("collector", WRONG)
@pytest.mark.parametrize("grace", [NONE, timedelta(days=3)])
def test_a_live_round_is_published_whole_or_refused(stager: int, collector: int, grace: timedelta) -> None:
    """For each pair of wrong clocks; refused, it goes through when it is run again."""
    storage = Storage()
    storage.dates["old"], storage.attempts["old"] = storage.now - 30 * DAY, f"{storage.now - 30 * DAY:012x}{'0' * 20}"
    tiering = storage.begin()
    staged = storage.stage(1, clock=stager, after=tiering.attempts_after)
    storage.collect(grace, collector)
    try:
        tiering.commit([staged])
    except Collected:
        again = storage.begin()
        restaged = storage.stage(1, clock=stager, after=again.attempts_after)
        assert again.commit([restaged]).outcome is RoundOutcome.PUBLISHED
    assert (storage.table.rows, storage.lost) == ([1], set())
    assert "old" not in storage.dates


@pytest.mark.parametrize("collector", WRONG)
def test_a_collectors_own_clock_has_no_part_in_it(collector: int) -> None:
    """What is young by the storage stays, and nothing lies in the future."""
    storage = Storage()
    tiering = storage.begin()
    storage.dates["old"], storage.attempts["old"] = storage.now - 5 * DAY, "written by nobody"
    young = storage.stage(1)
    collected = storage.collect(timedelta(days=3), collector)
    assert [file.path for file in collected.removed] == ["old"]
    assert collected.horizon is not None
    assert collected.horizon < storage.now - 2 * DAY
    assert tiering.commit([young]).outcome is RoundOutcome.PUBLISHED


@pytest.mark.parametrize("grace", [NONE, timedelta(days=3)])
def test_nothing_of_a_stager_ahead_is_deleted_while_it_may_be_published(grace: timedelta) -> None:
    storage = Storage()
    tiering = storage.begin()
    staged = storage.stage(1, clock=DAY)
    storage.now += grace // timedelta(milliseconds=1)
    collected = storage.collect(grace)
    assert (collected.removed, [file.path for file in collected.ahead]) == ((), [staged.files[0].path])
    assert collected.horizon is None, "it bars nobody for nothing"
    assert tiering.commit([staged]).outcome is RoundOutcome.PUBLISHED
    assert storage.lost == set()


def test_what_a_stager_ahead_left_goes_when_its_time_has_come() -> None:
    storage = Storage()
    staged = storage.stage(1, clock=DAY)
    assert storage.collect().removed == ()
    storage.now += DAY
    assert [file.path for file in storage.collect().removed] == [staged.files[0].path]


@pytest.mark.parametrize("ahead", [DAY, 10 * DAY, 50 * 365 * DAY])
def test_a_horizon_that_a_wrong_clock_wrote_stops_no_round_that_begins_after_it(ahead: int) -> None:
    """As releases before did, which took their host's clock."""
    storage = Storage()
    tiering = storage.begin()
    under_way = storage.stage(0, after=tiering.attempts_after)
    raise_horizon(MemoryFactory(storage.table), storage.table.uuid, storage.now + ahead)
    with pytest.raises(Collected, match="horizon --lower"):
        tiering.commit([under_way])
    for epoch in range(3):
        again = storage.begin(epoch)
        staged = storage.stage(epoch, clock=-DAY, after=again.attempts_after)
        storage.collect()
        assert again.commit([staged]).outcome is RoundOutcome.PUBLISHED
    assert storage.lost == set()


@pytest.mark.parametrize("stager", [-10 * DAY, -DAY, 0])
def test_lowering_lets_nothing_through_that_was_deleted(stager: int) -> None:
    storage = Storage()
    factory = MemoryFactory(storage.table)
    tiering = storage.begin()
    staged = storage.stage(1, clock=stager)
    future = storage.now + 10 * DAY
    raise_horizon(factory, storage.table.uuid, future)
    storage.remove_orphans(storage.orphans(future))
    storage.now += 10
    assert lower_horizon(factory, storage.table.uuid) == (future, storage.now)
    with pytest.raises(Collected):
        tiering.commit([staged])
    assert storage.begin().commit([storage.stage(1)]).outcome is RoundOutcome.PUBLISHED
    assert storage.lost == set()


def test_a_horizon_of_the_past_is_not_lowered() -> None:
    storage = Storage()
    factory = MemoryFactory(storage.table)
    for horizon in (None, storage.now - 1):
        if horizon is not None:
            raise_horizon(factory, storage.table.uuid, horizon)
        version = storage.table.version
        with pytest.raises(ConfigError, match="future"):
            lower_horizon(factory, storage.table.uuid)
        assert storage.table.version == version


def test_a_horizon_is_not_lowered_by_a_guess() -> None:
    storage = Storage(asks=False)
    factory = MemoryFactory(storage.table)
    raise_horizon(factory, storage.table.uuid, storage.now + DAY)
    with pytest.raises(ConfigError, match="of the storage's clock"):
        lower_horizon(factory, storage.table.uuid)


def test_a_horizon_beyond_what_the_storage_knows_is_refused() -> None:
    storage = Storage()
    with pytest.raises(ValueError, match="beyond"):
        raise_horizon(MemoryFactory(storage.table), storage.table.uuid, storage.now + 1, newest=storage.now)
    assert storage.table.version == 0


@pytest.mark.parametrize("collector", [DAY, 10 * DAY])
def test_where_the_storage_can_not_be_asked_its_newest_file_tells(collector: int) -> None:
    storage = Storage(asks=False)
    old, young = storage.stage(1), storage.stage(2)
    storage.dates[old.files[0].path] -= 5 * DAY
    storage.attempts[old.files[0].path] = "of another writer"
    removed = storage.collect(timedelta(days=3), collector).removed
    assert [file.path for file in removed] == [old.files[0].path]
    assert young.files[0].path in storage.dates


@pytest.mark.parametrize("driver", WRONG)
def test_after_a_rollback_the_storage_says_what_is_old(driver: int, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage()
    plain = type(storage.table.committer().open()).watermark

    def rolled_back(self: Any, pipeline: str) -> Watermark | None:
        if pipeline == COLLECTOR:
            raise RolledBack("restored")
        return plain(self, pipeline)

    monkeypatch.setattr(type(storage.table.committer().open()), "watermark", rolled_back)
    with shifted(driver):
        slow = storage.begin()
        old = storage.stage(0)
        storage.now += 2 * 3_600_000
        with pytest.raises(Collected):
            slow.commit([old])
        tiering = storage.begin()
        assert (
            tiering.commit([storage.stage(0, clock=driver, after=tiering.attempts_after)]).outcome
            is RoundOutcome.PUBLISHED
        )


def test_an_attempt_begins_no_earlier_than_it_is_told() -> None:
    now = host_time()
    assert attempt_began_at(new_attempt_id(now + DAY)) == now + DAY
    assert attempt_began_at(new_attempt_id(now - DAY)) >= now
    assert attempt_began_at(new_attempt_id(1 << 60)) == LATEST


@pytest.mark.parametrize("change", [pipelines.forget, pipelines.adopt, pipelines.rewind])
def test_the_horizon_is_not_set_as_if_it_were_a_pipelines(change: Any) -> None:
    """Forgotten, it would let rounds through whose files are deleted."""
    storage = Storage()
    factory = MemoryFactory(storage.table)
    raise_horizon(factory, storage.table.uuid, storage.now)
    more = {"adopt": {"run": "r", "epoch": 5}, "rewind": {"epoch": 0}}.get(change.__name__, {})
    with pytest.raises(ConfigError, match="maintain horizon"):
        change(factory, COLLECTOR, **more)
    assert horizon_of(storage.table.committer().open()) == storage.now


def test_every_wrong_pair_in_turn_on_one_table() -> None:
    """What one leaves behind meets the next."""
    storage = Storage()
    epochs = itertools.count()
    for stager, collector in itertools.product(WRONG, WRONG):
        epoch = next(epochs)
        tiering = storage.begin(epoch)
        staged = storage.stage(epoch, clock=stager, after=tiering.attempts_after)
        storage.collect(NONE, collector)
        try:
            tiering.commit([staged])
        except Collected:
            again = storage.begin(epoch)
            again.commit([storage.stage(epoch, clock=stager, after=again.attempts_after)])
        storage.now += 3_600_000
    assert storage.table.rows == list(range(next(epochs)))
    assert storage.lost == set()
