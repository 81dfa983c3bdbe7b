"""The upkeep of indexes in the state database: who looks after which table, and when again."""

from __future__ import annotations

from laketier.service.state import IndexFigures, StateStore, Success, Upkeep
from state_tables import A, B, Clock, table

NAMES = {"s.a", "s.b"}


def tiered(store: StateStore, *names: str) -> None:
    store.register([table(name) for name in names])
    for lease in store.acquire(A, 9, 30):
        store.finish(lease, Success(epoch=0, rows=1))


def upkeep(store: StateStore, name: str) -> Upkeep | None:
    return next(status.upkeep for status in store.snapshot() if status.table.source_table == name)


def test_one_worker_at_a_time_looks_after_a_table(store: StateStore, clock: Clock) -> None:
    store.register([table("a")])
    assert store.take_upkeep(A, NAMES, 30) is None, "it has no rows yet"
    tiered(store, "a", "b", "c")
    first, second = store.take_upkeep(A, NAMES, 30), store.take_upkeep(B, NAMES, 30)
    assert first is not None
    assert second is not None
    assert {first.name, second.name} == NAMES, "c has no indexes"
    assert store.take_upkeep(B, NAMES, 30, due=False) is None
    clock.pass_seconds(20)
    assert store.renew_upkeep(first, 30)
    clock.pass_seconds(20)
    taken = store.take_upkeep(B, NAMES, 30)
    assert taken is not None
    assert taken.name == second.name, "the one that was not renewed"
    clock.pass_seconds(31)
    over = store.take_upkeep(B, {first.name}, 30)
    assert over is not None
    assert not store.renew_upkeep(first, 30)
    store.end_upkeep(first, [IndexFigures("late")], 1, failed=False, again_seconds=5)
    kept = upkeep(store, first.name.removeprefix("s."))
    assert kept is not None
    assert (kept.indexes, kept.steps_total) == ((), 0), "a lost lease stores nothing"


def test_it_is_due_again_later_and_after_failures_later_still(store: StateStore, clock: Clock) -> None:
    tiered(store, "a")
    lease = store.take_upkeep(A, NAMES, 30)
    assert lease is not None
    figures = IndexFigures("x", 2, 75, 25, built_at=clock())
    store.end_upkeep(lease, [figures], 3, failed=False, again_seconds=5)
    assert upkeep(store, "a") == Upkeep(lease.tiering_table, clock(), 0, 0, 3, (figures,))
    assert figures.tail_share == 0.25
    assert store.take_upkeep(A, NAMES, 30) is None
    clock.pass_seconds(5)
    waits = []
    for failures in range(3):
        lease = store.take_upkeep(A, NAMES, 30)
        assert lease is not None
        assert lease.failures == failures
        store.end_upkeep(lease, [IndexFigures("x", error="no")], 0, failed=True, again_seconds=0)
        began = clock()
        while store.take_upkeep(B, NAMES, 0) is None:  # a lease that is over at once
            clock.pass_seconds(0.1)
        waits.append(clock() - began)
    assert waits == sorted(waits)
    assert waits[0] > 0
    lease = store.take_upkeep(A, NAMES, 30)
    assert lease is not None
    store.end_upkeep(lease, [], 0, failed=False, again_seconds=5)
    done = upkeep(store, "a")
    assert done is not None
    assert (done.failures, done.failures_total, done.steps_total) == (0, 3, 3)


def test_errors_are_stored_without_secrets(store: StateStore) -> None:
    tiered(store, "a")
    lease = store.take_upkeep(A, NAMES, 30)
    assert lease is not None
    store.end_upkeep(lease, [IndexFigures("x", error="password=hunter2hunter2 \0")], 0, failed=True, again_seconds=5)
    kept = upkeep(store, "a")
    assert kept is not None
    assert "hunter2" not in (kept.indexes[0].error or "")


def test_dropped_and_paused_tables_are_left_alone(store: StateStore) -> None:
    tiered(store, "a", "b")
    store.pause("s.a")
    store.drop("s.b")
    assert store.take_upkeep(A, NAMES, 30) is None
