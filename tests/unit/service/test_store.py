"""The state store on SQLite: what the state machine does not say by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from laketier.service.schedule import State
from laketier.service.state import (
    Failure,
    LeaseEnd,
    LeaseLost,
    StateError,
    StateStore,
    Success,
    Worker,
)
from laketier.service.state import store as storing
from laketier.service.state.endings import TRIES_AT_ONCE
from laketier.spi import ConfigError
from state_tables import A, B, Clock, names, row, table


def test_a_round(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    (lease,) = store.acquire(A, 5, 30)
    assert (lease.fence, lease.deadline, lease.round_deadline) == (1, clock.now + 30_000, clock.now + 60_000)
    began = clock.now
    clock.pass_seconds(5)
    store.finish(
        lease,
        Success(epoch=1, rows=10, bytes=20, files=2, snapshot_id="9", range_start="{}", range_end='{"0":10}',
                offsets='{"0":10}', lag_offsets=3, lag_seconds=1.5, bad_records=4, read_until_at=began + 1_000),
    )  # fmt: skip
    (status,) = store.snapshot()
    got = status.table
    assert (got.state, got.last_tiered_at, got.due_at) == (State.SCHEDULED, began + 1_000, began + 53_500)
    assert (got.epoch, got.offsets, got.snapshot_id, got.lag_offsets, got.lag_seconds) == (1, '{"0":10}', "9", 3, 1.5)
    assert (got.rounds_total, got.rows_total, got.bytes_total, got.files_total) == (1, 10, 20, 2)
    assert got.bad_records_total == 4
    assert status.behind_seconds == 4
    assert status.fresh
    ended = status.last_round
    assert ended is not None
    assert store.rounds(got.id) == (ended,)
    assert (ended.ending, ended.worker, ended.began_at, ended.ended_at) == (LeaseEnd.TIERED, "a", began, clock.now)
    assert (ended.rows, ended.range_start, ended.range_end, ended.snapshot_id) == (10, "{}", '{"0":10}', "9")
    assert (ended.lag_offsets, ended.lag_seconds, ended.bad_records) == (3, 1.5, 4)
    assert store.acquire(B, 5, 30) == ()
    clock.pass_seconds(56)
    (again,) = store.acquire(B, 5, 30)
    assert again.fence == 2
    store.finish(again, Success())
    assert (row(store, "t").epoch, row(store, "t").offsets) == (1, '{"0":10}'), "nothing new was said of them"


def test_priority_goes_first_and_then_who_waits_longest(store: StateStore, clock: Clock) -> None:
    store.register([table("low"), table("high", priority=2), table("late", priority=1), table("early", priority=1)])
    late = next(lease for lease in store.acquire(A, 4, 30) if lease.table.source_table == "late")
    store.release(late)
    clock.pass_seconds(31)
    assert names(store.acquire(A, 1, 30)) == ["high"]
    assert names(store.acquire(A, 9, 30)) == ["late", "early", "low"]


def test_a_force_completed_table_joins_the_end_of_the_queue(store: StateStore) -> None:
    store.register([table("a"), table("b"), table("c")])
    (lease,) = store.acquire(A, 1, 30)
    store.finish(lease, Success(epoch=1, force_completed=True))
    assert names(store.acquire(A, 9, 30)) == ["b", "c", "a"]


def test_a_round_that_left_something_makes_no_table_fresher(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    for left, behind in ((5, None), (0, 0), (9, 7), (2, 14)):
        (lease,) = store.acquire(A, 1, 30)
        store.finish(lease, Success(epoch=left, lag_offsets=left, force_completed=left > 0))
        (status,) = store.snapshot()
        assert (status.table.lag_offsets, status.behind_seconds) == (left, behind)
        clock.pass_seconds(7)
        if not left:
            store.retier("s.t")


def test_no_table_starves_though_others_come_back_at_once(store: StateStore) -> None:
    store.register([table(f"t{number}") for number in range(7)])
    taken: list[str] = []
    for _ in range(21):
        (lease,) = store.acquire(A, 1, 30)
        taken.extend(names([lease]))
        store.finish(lease, Success(force_completed=True))
    assert taken == [f"t{number}" for number in range(7)] * 3


def test_a_table_that_fails_does_not_hold_up_the_others(store: StateStore, clock: Clock) -> None:
    store.register([table("bad"), table("good", freshness_seconds=1)])
    for round_number in range(1, 30):
        leases = {lease.table.source_table: lease for lease in store.acquire(A, 2, 30)}
        assert "good" in leases
        store.finish(leases["good"], Success(epoch=round_number))
        if "bad" in leases:
            store.fail(leases["bad"], "no such topic", retryable=True)
        clock.pass_seconds(1)
    bad = row(store, "bad")
    assert (bad.state, bad.error) == (State.FAILED, "no such topic")
    assert 2 <= bad.failures <= 6, "the waits are doubled"
    clock.now = bad.next_try_at
    lease = next(lease for lease in store.acquire(A, 2, 30) if lease.table.source_table == "bad")
    store.finish(lease, Success())
    assert (row(store, "bad").failures, row(store, "bad").error) == (0, None)


def test_what_may_go_better_right_now_is_tried_at_once_a_few_times(store: StateStore) -> None:
    store.register([table("t")])
    for _ in range(TRIES_AT_ONCE):
        (lease,) = store.acquire(A, 1, 30)
        store.finish_all([(lease, Failure("somebody else committed", True, at_once=True))])
        assert row(store, "t").state is State.FAILED
    (lease,) = store.acquire(A, 1, 30)
    store.finish_all([(lease, Failure("somebody else committed", True, at_once=True))])
    assert store.acquire(A, 1, 30) == (), "then it waits"


def test_what_needs_a_person_waits_for_one(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    (lease,) = store.acquire(A, 1, 30)
    store.fail(lease, ConfigError("wrong", fix="Mend it."), retryable=False)
    clock.pass_seconds(100_000)
    assert store.acquire(A, 1, 30) == ()
    assert (row(store, "t").state, row(store, "t").error) == (State.STOPPED, "wrong. Mend it.")
    assert store.resume("s.*") == ("s.t",)
    assert names(store.acquire(A, 1, 30)) == ["t"]


def test_a_zombie_can_change_nothing(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    (old,) = store.acquire(A, 1, 30)
    clock.pass_seconds(30)
    (new,) = store.acquire(B, 1, 30)
    assert new.fence == old.fence + 1
    before = store.snapshot()
    for stale in (old, replace(new, fence=new.fence + 1), replace(new, worker="a")):
        for end in (
            lambda lease: store.finish(lease, Success(epoch=7)),
            lambda lease: store.fail(lease, "x", retryable=True),
            store.release,
        ):
            with pytest.raises(LeaseLost, match="is not held by"):
                end(stale)
        assert store.finish_all([(stale, Success())]) == (stale,)
    assert store.heartbeat(A, [old], 30) == ()
    assert store.snapshot() == before
    assert before[0].last_round is not None
    assert before[0].last_round.ending is LeaseEnd.EXPIRED
    assert store.heartbeat(B, [new], 30) == (new,)
    store.finish(new, Success())


def test_a_lease_that_ran_out_is_ours_until_it_is_taken(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    (lease,) = store.acquire(A, 1, 30)
    clock.pass_seconds(1_000)
    (renewed,) = store.heartbeat(A, [lease], 30)
    assert renewed.deadline == clock.now + 30_000
    assert store.acquire(B, 1, 30) == ()
    clock.pass_seconds(1_000)
    store.finish(renewed, Success())


@pytest.mark.parametrize("skew", [-86_400_000, -60_000, 60_000, 86_400_000])
def test_a_skewed_clock_moves_takeovers_and_breaks_nothing(url: str, clock: Clock, skew: int) -> None:
    with (
        StateStore.open(url, clock=clock) as right,
        StateStore.open(url, clock=lambda: clock.now + skew) as skewed,
    ):
        right.register([table("t")])
        (first,) = right.acquire(A, 1, 30)
        second = skewed.acquire(B, 1, 30)
        if skew == -60_000:
            assert second == (), "a clock that is behind takes over late"
            right.finish(first, Success())
        else:
            assert [lease.fence for lease in second] == [2], "one that is ahead, or far behind, takes over early"
            with pytest.raises(LeaseLost):
                right.finish(first, Success())
            skewed.finish(second[0], Success())


def test_an_end_that_was_stored_may_be_told_again(store: StateStore) -> None:
    store.register([table("t")])
    (lease,) = store.acquire(A, 1, 30)
    store.finish(lease, Success(epoch=4, rows=1))
    after = store.snapshot()
    store.finish(lease, Success(epoch=4, rows=1))
    assert store.snapshot() == after
    with pytest.raises(LeaseLost):
        store.finish(lease, Success(epoch=5))
    with pytest.raises(LeaseLost):
        store.fail(lease, "x", retryable=True)


def test_many_ends_in_one_transaction(store: StateStore, clock: Clock) -> None:
    store.register([table(name) for name in "abcd"])
    a, b, c, d = store.acquire(A, 4, 30)
    stale = replace(d, fence=9)
    lost = store.finish_all(
        [(a, Success(rows=1)), (b, Failure("x", True)), (stale, Success()), (c, Failure("y", False))]
    )
    assert lost == (stale,)
    states = {status.table.source_table: status.table.state for status in store.snapshot()}
    assert states == {"a": State.SCHEDULED, "b": State.FAILED, "c": State.STOPPED, "d": State.TIERING}
    with pytest.raises(StateError, match="twice"):
        store.finish_all([(d, Success()), (d, Success())])
    assert row(store, "d").state is State.TIERING


def test_rounds_are_pruned_per_table(store: StateStore) -> None:
    store.register([table("a"), table("b")])
    for _ in range(5):
        store.finish_all([(lease, Success(force_completed=True)) for lease in store.acquire(A, 2, 30)])
    assert store.prune(2) == 6
    assert [[ended.fence for ended in store.rounds(status.table.id)] for status in store.snapshot()] == [[5, 4]] * 2
    assert store.prune(2) == 0


def test_a_long_history_is_pruned_in_parts(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "_PRUNED_AT_ONCE", 2)
    store.register([table("a"), table("b")])
    for _ in range(6):
        store.finish_all([(lease, Success(force_completed=True)) for lease in store.acquire(A, 2, 30)])
    asked: list[None] = []

    def after_three() -> bool:
        asked.append(None)
        return len(asked) > 3

    assert store.prune(1, after_three) == 5
    left = [[ended.fence for ended in store.rounds(status.table.id)] for status in store.snapshot()]
    assert left == [[6], [6, 5, 4, 3, 2, 1]]
    assert store.prune(1) == 5


def test_workers_that_are_gone_are_pruned_but_for_the_newest_and_who_has_a_lease(
    store: StateStore, clock: Clock
) -> None:
    """Each start of a worker is one more, and they were kept for ever."""
    store.register([table("t")])
    leaving = [Worker(f"w{number}", "here", number, "0") for number in range(6)]
    for each in leaving:
        store.heartbeat(each, [], 30)
        clock.pass_seconds(1)
    store.acquire(leaving[1], 1, 30)
    assert store.prune_workers(2) == 0, "they may live"
    clock.pass_seconds(86_400)
    store.heartbeat(A, [], 30)
    assert store.prune_workers(2) == 4
    assert [each.worker.id for each in store.workers()] == ["w1", "w5", "a"]
    assert store.prune_workers(2) == 0
    store.acquire(A, 1, 30)
    assert row(store, "t").deaths == 1, "whose death is judged"
    assert store.prune_workers(1) == 2
    store.heartbeat(leaving[5], [], 30)
    assert [each.worker.id for each in store.workers()] == ["a", "w5"]


def test_workers_are_seen(store: StateStore, clock: Clock) -> None:
    started = clock.now
    store.heartbeat(A, (), 30)
    clock.pass_seconds(3)
    store.heartbeat(A, (), 30)
    (seen,) = store.workers()
    assert (seen.worker, seen.started_at, seen.heartbeat_at) == (A, started, clock.now)
    assert Worker.here().id != Worker.here().id


def test_a_table_that_is_called_as_a_pattern_takes_commands_by_its_name(store: StateStore) -> None:
    store.register([table("[abc]"), table("a"), table("x*"), table("xy")])
    assert store.pause("s.[abc]") == ("s.[abc]", "s.a")
    assert store.pause("s.x*") == ("s.x*", "s.xy"), "and a pattern goes on to be one"
    assert store.resume("s.[[]abc]") == ("s.[abc]",)
