"""A state database whose clock was ahead for a while and was set right: no table is left alone for as long."""

from __future__ import annotations

import pytest

from laketier.service.schedule import State
from laketier.service.state import StateStore, Success
from laketier.service.until_idle import UntilIdle
from laketier.spi.clocks import shifted
from state_tables import A, B, Clock, table

DAY = 86_400


def test_a_lease_of_a_dead_worker(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    clock.pass_seconds(10 * DAY)
    assert store.acquire(A, 1, 30)
    clock.pass_seconds(-10 * DAY)
    (taken,) = store.acquire(B, 1, 30)
    assert taken.fence == 2
    store.finish(taken, Success())


def test_a_table_that_is_due_in_days(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    clock.pass_seconds(10 * DAY)
    (lease,) = store.acquire(A, 1, 30)
    store.finish(lease, Success())
    clock.pass_seconds(-10 * DAY)
    (taken,) = store.acquire(A, 1, 30)
    store.finish(taken, Success())
    assert store.acquire(A, 1, 30) == (), "now it is due after its freshness"


def test_how_old_a_table_is_that_a_clock_ahead_tiered_nobody_knows(store: StateStore, clock: Clock) -> None:
    """It was called fresh for as long as the clock was wrong by."""
    store.register([table("t")])
    clock.pass_seconds(10 * DAY)
    (lease,) = store.acquire(A, 1, 30)
    store.finish(lease, Success())
    assert store.snapshot()[0].fresh
    clock.pass_seconds(-10)
    assert (store.snapshot()[0].fresh, store.snapshot()[0].behind_seconds) == (True, 0), "clocks go a little wrong"
    clock.pass_seconds(-10 * DAY)
    assert (store.snapshot()[0].fresh, store.snapshot()[0].behind_seconds) == (False, None)
    (lease,) = store.acquire(A, 1, 30)
    store.finish(lease, Success())
    assert store.snapshot()[0].fresh


def test_a_failure_that_is_tried_again_in_days(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    clock.pass_seconds(10 * DAY)
    (lease,) = store.acquire(A, 1, 30)
    store.fail(lease, "no", retryable=True)
    clock.pass_seconds(-10 * DAY)
    assert len(store.acquire(A, 1, 30)) == 1


def test_the_upkeep_of_indexes_that_a_dead_worker_has(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    (lease,) = store.acquire(A, 1, 30)
    store.finish(lease, Success())
    clock.pass_seconds(10 * DAY)
    assert store.take_upkeep(A, {"s.t"}, 30) is not None
    clock.pass_seconds(-10 * DAY)
    assert store.take_upkeep(B, {"s.t"}, 30) is not None
    assert store.take_upkeep(A, {"s.t"}, 30) is None, "the new lease counts"


@pytest.mark.parametrize("failed", [False, True])
def test_the_upkeep_of_indexes_that_is_due_in_days(store: StateStore, clock: Clock, failed: bool) -> None:
    store.register([table("t")])
    (lease,) = store.acquire(A, 1, 30)
    store.finish(lease, Success())
    clock.pass_seconds(10 * DAY)
    for off in (-10 * DAY, 0):
        kept = store.take_upkeep(A, {"s.t"}, 30)
        assert kept is not None
        store.end_upkeep(kept, [], 0, failed=failed, again_seconds=30)
        clock.pass_seconds(off)
    assert store.take_upkeep(A, {"s.t"}, 30) is None, "now it is due after its wait"


@pytest.mark.parametrize("off", [-10 * DAY, 10 * DAY])
def test_the_clock_of_a_rounds_host(store: StateStore, clock: Clock, off: int) -> None:
    """What a worker says of when it read is taken for a time of the round, and of no other."""
    store.register([table("t")])
    (lease,) = store.acquire(A, 1, 30)
    clock.pass_seconds(5)
    store.finish(lease, Success(read_until_at=clock.now + off * 1000))
    (status,) = store.snapshot()
    assert status.table.state is State.SCHEDULED
    assert status.table.last_tiered_at is not None
    assert clock.now - 5_000 <= status.table.last_tiered_at <= clock.now
    assert store.acquire(A, 1, 30) == ()


def test_without_a_clock_of_its_own_the_store_has_the_databases(url: str) -> None:
    """Which is this host's for SQLite."""
    with StateStore.open(url) as store, shifted(10 * DAY * 1000):
        ahead = store.now()
        with shifted(0):
            assert ahead - store.now() > 9 * DAY * 1000


def test_a_worker_that_waits_until_all_is_read(store: StateStore, clock: Clock) -> None:
    """What was tiered in days was not tiered by this worker, and a part of a backlog is not all of it."""
    store.register([table("t")])
    clock.pass_seconds(10 * DAY)
    (lease,) = store.acquire(A, 1, 30)
    store.finish(lease, Success())
    clock.pass_seconds(-10 * DAY)
    until = UntilIdle.begun(store, store.now())
    assert not until.is_over(store.snapshot())
    for left, is_over in ((7, False), (7, False), (0, True)):
        clock.pass_seconds(1)
        (lease,) = store.acquire(A, 1, 30)
        store.finish(lease, Success(lag_offsets=left, force_completed=left > 0))
        assert until.is_over(store.snapshot()) is is_over
    assert not until.left_out(store.snapshot())
