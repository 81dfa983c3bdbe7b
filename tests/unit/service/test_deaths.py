"""Which table is charged with a worker's death, and which is not."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from alembic import command
from alembic.config import Config

from depth import deep_where
from laketier.service.schedule import State
from laketier.service.state import Death, Failure, Lease, LeaseEnd, StateStore, Success, Worker
from laketier.service.state import migrate as migrating
from laketier.service.state.database import Database
from laketier.service.state.deaths import APART_MS, PATIENCE_MS, SET_ASIDE_AFTER, SET_ASIDE_AFTER_TASKS
from state_tables import A, B, Clock, names, row, table

LEASE = 30


def worker(number: int) -> Worker:
    return Worker(f"w{number}", "here", number, "0")


def take(store: StateStore, who: Worker, limit: int = 64) -> Sequence[Lease]:
    store.heartbeat(who, [], LEASE)
    return store.acquire(who, limit, LEASE)


def die(store: StateStore, clock: Clock, who: Worker) -> Sequence[Lease]:
    """A worker takes what it gets, and is killed."""
    leases = take(store, who)
    clock.pass_seconds(LEASE)
    return leases


def look_at_leases(store: StateStore) -> None:
    """As any worker does that has no room for a table."""
    store.acquire(A, 0, LEASE)


def with_another(store: StateStore, name: str) -> None:
    """Register a table, and another one that is not due for a year."""
    other = table("other", freshness_seconds=365 * 86_400)
    store.register([other])
    store.finish(take(store, A)[0], Success())
    store.register([table(name), other])


def test_a_table_that_kills_its_worker_is_set_aside_until_it_is_resumed(store: StateStore, clock: Clock) -> None:
    with_another(store, "t")
    for number in range(1, SET_ASIDE_AFTER):
        assert names(die(store, clock, worker(number))) == ["t"]
        (lease,) = take(store, A)
        told = row(store, "t")
        assert (told.deaths, told.suspect) == (number, True)
        assert f"worker w{number} died" in told.error
        store.release(lease)
    assert names(die(store, clock, worker(9))) == ["t"]
    assert take(store, A) == ()
    told = row(store, "t")
    assert (told.state, told.deaths) == (State.STOPPED, SET_ASIDE_AFTER)
    assert "set aside: 3 workers in a row died" in told.error
    assert "the last one was w9" in told.error
    last = store.rounds(told.id)[0]
    assert (last.ending, last.worker, last.error) == (LeaseEnd.STOPPED, "w9", told.error)
    store.resume("s.t")
    told = row(store, "t")
    assert (told.state, told.deaths, told.suspect, told.error) == (State.SCHEDULED, 0, False, None)
    assert names(take(store, A)) == ["t"]


def test_bystanders_run_alone_once_and_are_charged_with_nothing(store: StateStore, clock: Clock) -> None:
    everything = [f"t{number}" for number in range(5)]
    store.register([table(name) for name in everything])
    assert names(die(store, clock, worker(1))) == everything
    for name in everything:
        (lease,) = take(store, A)
        assert names([lease]) == [name]
        assert "while it had this table and others" in row(store, name).error
        assert take(store, A) == (), "nothing goes beside it"
        store.finish(lease, Success(epoch=0))
        assert (row(store, name).deaths, row(store, name).suspect, row(store, name).error) == (0, False, None)
    clock.pass_seconds(120)
    assert len(take(store, A)) == 5, "together again"


def test_a_worker_that_holds_something_waits_for_a_suspect_and_not_for_ever(store: StateStore, clock: Clock) -> None:
    every = [table("a"), table("b")]
    store.register(every)
    die(store, clock, worker(1))
    store.register([*every, table("slow", priority=1)])
    leased = list(take(store, A, 1))
    store.register([*every, table("slow", priority=1), table("late")])
    assert names(leased) == ["slow"]

    def pass_seconds(seconds: float) -> None:
        while seconds > 0:
            clock.pass_seconds(min(seconds, LEASE / 2))
            leased[:] = store.heartbeat(A, leased, LEASE)
            seconds -= LEASE / 2

    def more() -> list[str]:
        taken = store.acquire(A, 64, LEASE)
        leased.extend(taken)
        return names(taken)

    assert more() == [], "the suspects at the head of the queue wait until the worker has nothing"
    pass_seconds(PATIENCE_MS / 1000)
    assert more() == ["a"], "it hangs: no reason to wait for it"
    assert row(store, "a").alone, "the only suspect, so that a death would be charged to it"
    assert more() == []
    pass_seconds(PATIENCE_MS / 1000)
    assert more() == ["late"], "no other suspect beside one, but who waits behind it need not wait"
    assert row(store, "a").alone
    pass_seconds((APART_MS - PATIENCE_MS) / 1000)
    assert more() == ["b"]
    assert not row(store, "a").alone
    assert not row(store, "b").alone


@pytest.mark.parametrize("seconds", [5, 90])
def test_a_table_is_set_aside_however_long_its_rounds_take_to_kill(
    store: StateStore, clock: Clock, seconds: int
) -> None:
    """Others are due all the while, and have company with it after a minute."""
    others = [f"o{number}" for number in range(5)]
    store.register([table("poison"), *(table(name, freshness_seconds=30) for name in others)])
    deaths = 0
    while row(store, "poison").state is not State.STOPPED:
        assert deaths < 2 * SET_ASIDE_AFTER
        deaths += 1
        leased: dict[Lease, float] = {}
        store.heartbeat(worker(deaths), [], LEASE)
        while all(lease.table.source_table != "poison" or past < seconds for lease, past in leased.items()):
            leased |= dict.fromkeys(store.acquire(worker(deaths), 64, LEASE, busy=bool(leased)), 0.0)
            done = [each for each in leased if each.table.source_table != "poison"]
            store.finish_all([(lease, Success(epoch=deaths)) for lease in done])
            left = {lease: past + 10.0 for lease, past in leased.items() if lease not in done}
            leased = dict(zip(store.heartbeat(worker(deaths), list(left), LEASE), left.values(), strict=True))
            clock.pass_seconds(10)
        clock.pass_seconds(LEASE)
        store.heartbeat(A, [], LEASE)
        for lease in store.acquire(A, 64, LEASE):
            store.release(lease)
    assert "set aside: 3 workers in a row died" in (row(store, "poison").error or "")
    assert {(row(store, name).state, row(store, name).deaths) for name in others} <= {
        (state, 0) for state in (State.PENDING, State.SCHEDULED)
    }


def test_a_slow_bystander_does_not_hide_who_kills(store: StateStore, clock: Clock) -> None:
    """Both are suspects, and the slow one is first in each queue: the other is never leased beside it."""
    year = 365 * 86_400
    store.register([table("slow", priority=1, freshness_seconds=year), table("poison")])
    die(store, clock, worker(1))
    (slow,) = take(store, worker(2))
    assert names([slow]) == ["slow"]
    (slow,) = store.heartbeat(worker(2), [slow], 10 * LEASE)
    clock.pass_seconds(2 * PATIENCE_MS / 1000)
    assert take(store, worker(2)) == ()
    store.finish(slow, Success(epoch=0))
    for number in range(3, 3 + SET_ASIDE_AFTER):
        assert names(die(store, clock, worker(number))) == ["poison"]
    take(store, A)
    assert row(store, "poison").state is State.STOPPED


@pytest.mark.parametrize("ahead", [0, 864_000])
def test_a_wrong_clock_hides_no_death(store: StateStore, clock: Clock, ahead: int) -> None:
    with_another(store, "t")
    for number in range(1, SET_ASIDE_AFTER + 1):
        clock.pass_seconds(ahead)
        store.retier("s.t")
        assert names(take(store, worker(number), 1)) == ["t"]
        clock.pass_seconds(3600 - ahead)  # it was ahead while the worker lived, and is set right
        for lease in take(store, A):
            store.release(lease)
    assert (row(store, "t").state, row(store, "t").deaths) == (State.STOPPED, SET_ASIDE_AFTER)


def test_patience_is_not_as_long_as_a_clock_was_wrong(store: StateStore, clock: Clock) -> None:
    store.register([table("a")])
    die(store, clock, worker(1))
    store.register([table("a"), table("slow", priority=1)])
    clock.pass_seconds(200)
    assert names(take(store, A, 1)) == ["slow"]
    clock.pass_seconds(-PATIENCE_MS / 1000 + 1)
    store.retier("s.a")
    assert store.acquire(A, 64, LEASE) == ()
    clock.pass_seconds(-1)
    assert names(store.acquire(A, 64, LEASE)) == ["a"], "the clock was ahead, and was set right"


def test_who_has_company_is_not_charged(store: StateStore, clock: Clock) -> None:
    store.register([table("first", priority=1)])
    assert names(take(store, worker(1))) == ["first"]
    assert row(store, "first").alone
    store.register([table("first"), table("second")])
    assert names(take(store, worker(1))) == ["second"]
    assert not row(store, "first").alone
    clock.pass_seconds(LEASE)
    take(store, A)
    assert {(row(store, name).deaths, row(store, name).suspect) for name in ("first", "second")} == {(0, True)}


def test_a_worker_whose_lost_rounds_still_run_is_not_alone(store: StateStore) -> None:
    store.register([table("t")])
    store.heartbeat(A, [], LEASE)
    store.acquire(A, 1, LEASE, busy=True)
    assert not row(store, "t").alone


def test_a_worker_that_was_told_to_stop_may_be_killed(store: StateStore, clock: Clock) -> None:
    store.register([table("t"), table("u", priority=1)])
    for number in range(2 * SET_ASIDE_AFTER):
        take(store, worker(number), 1)
        store.stopping(worker(number))
        clock.pass_seconds(LEASE)
    take(store, A)
    assert {(each.table.deaths, each.table.suspect) for each in store.snapshot()} == {(0, False)}
    assert [each.stopping_at is not None for each in store.workers()] == [True] * 2 * SET_ASIDE_AFTER + [False]


def test_a_worker_that_lives_has_not_died(store: StateStore, clock: Clock) -> None:
    """It could not say that its round ended, and renews the lease no more."""
    store.register([table("t")])
    take(store, A)
    clock.pass_seconds(LEASE)
    store.heartbeat(A, [], LEASE)
    assert names(store.acquire(B, 1, LEASE)) == ["t"]
    assert (row(store, "t").deaths, row(store, "t").suspect) == (0, False)


def test_a_worker_that_asks_for_tables_has_not_died(store: StateStore, clock: Clock) -> None:
    """It stood still for longer than its lease, and asks before its next heartbeat."""
    store.register([table("t")])
    take(store, A)
    clock.pass_seconds(LEASE)
    assert names(store.acquire(A, 1, LEASE)) == ["t"]
    assert (row(store, "t").deaths, row(store, "t").suspect) == (0, False)
    assert store.rounds(row(store, "t").id)[0].error == "its lease ran out without a sign of its worker"


def test_a_worker_dies_only_once(store: StateStore, clock: Clock) -> None:
    """A clock that jumps, or a host that sleeps, makes a worker that lives look dead, each time again."""
    with_another(store, "t")
    for _ in range(2 * SET_ASIDE_AFTER):
        assert names(take(store, A)) == ["t"]
        clock.pass_seconds(LEASE)
        for lease in take(store, B):
            store.release(lease)
    assert (row(store, "t").deaths, row(store, "t").state) == (1, State.PENDING)
    for number in range(SET_ASIDE_AFTER):
        take(store, worker(number))
        clock.pass_seconds(LEASE)
    take(store, B)
    assert row(store, "t").state is State.STOPPED, "others did die in its rounds"


def test_a_table_that_freezes_two_workers_in_turn_is_set_aside(store: StateStore, clock: Clock) -> None:
    """Each comes back, after its lease: the two would be frozen for ever, with all that they have."""
    with_another(store, "t")
    frozen = 0
    while take(store, (A, B)[frozen % 2]):
        frozen += 1
        clock.pass_seconds(LEASE)
        assert frozen < 40
    assert (row(store, "t").state, row(store, "t").deaths) == (State.STOPPED, SET_ASIDE_AFTER)
    assert frozen > 2 * SET_ASIDE_AFTER


def test_a_good_round_forgets_the_deaths_before_it(store: StateStore, clock: Clock) -> None:
    store.register([table("t")])
    for number in range(4 * SET_ASIDE_AFTER):
        if number % SET_ASIDE_AFTER == SET_ASIDE_AFTER - 1:
            (lease,) = take(store, A)
            store.finish(lease, Success(epoch=number, force_completed=True))
            assert row(store, "t").deaths == 0
        else:
            assert len(die(store, clock, worker(number))) == 1
    assert row(store, "t").state is not State.STOPPED


def test_a_failed_round_forgets_a_suspicion_and_no_death(store: StateStore, clock: Clock) -> None:
    """Suspects whose source is away must not keep workers for themselves at each try."""
    store.register([table("a"), table("b")])
    die(store, clock, worker(1))
    (lease,) = take(store, A)
    store.fail(lease, "no broker", retryable=True)
    assert (row(store, "a").suspect, row(store, "a").deaths) == (False, 0)
    assert names(die(store, clock, worker(2))) == ["b"]
    (lease,) = take(store, A, 1)
    store.finish(lease, Success())
    (lease,) = take(store, A, 1)
    assert (names([lease]), row(store, "b").deaths) == (["b"], 1)
    store.fail(lease, "no broker", retryable=True)
    assert (row(store, "b").suspect, row(store, "b").deaths) == (True, 1)


def test_where_every_table_kills_its_worker_it_is_not_the_tables(store: StateStore, clock: Clock) -> None:
    """A host without memory, a broken library: one table is set aside, the others are tried on."""
    store.register([table(f"t{number}") for number in range(4)])
    for number in range(40):
        die(store, clock, worker(number))
    clock.pass_seconds(600)
    take(store, A)
    stopped = [each.table for each in store.snapshot() if each.table.state is State.STOPPED]
    assert len(stopped) == 1
    others = [each.table for each in store.snapshot() if each.table.state is not State.STOPPED]
    assert all(f"no round of the service succeeded since {stopped[0].name} was set aside" in (each.error or "")
               for each in others)  # fmt: skip
    clock.pass_seconds(LEASE)
    (lease,) = take(store, A)
    store.finish(lease, Success(epoch=1))
    for number in range(100, 104):
        die(store, clock, worker(number))
    take(store, A)
    assert sum(each.table.state is State.STOPPED for each in store.snapshot()) == 2, "one more, as a round went well"


def test_the_next_table_is_not_set_aside_as_the_first_one_was_resumed(store: StateStore, clock: Clock) -> None:
    """People resume what was set aside while it is still the workers that die."""
    with_another(store, "first")
    store.register([table("first", priority=1), table("second"), table("other", freshness_seconds=365 * 86_400)])
    store.pause("s.second")
    for number in range(SET_ASIDE_AFTER):
        assert names(die(store, clock, worker(number))) == ["first"]
    assert take(store, A) == ()
    store.resume("s.*")
    store.pause("s.first")
    for number in range(10, 10 + 2 * SET_ASIDE_AFTER):
        assert names(die(store, clock, worker(number))) == ["second"]
        look_at_leases(store)
        clock.pass_seconds(600)
    assert names(take(store, A)) == ["second"]
    told = row(store, "second")
    assert told.deaths == 2 * SET_ASIDE_AFTER
    assert "no round of the service succeeded since s.first was set aside" in told.error


DIED = Failure("Spark is gone", True, at_once=True, death=Death.ENGINE)


def test_a_table_that_kills_the_engine_of_its_worker_is_set_aside(store: StateStore) -> None:
    """The worker lives, and tells it: no lease runs out."""
    store.register([table("bystander"), table("t")])
    leases = take(store, worker(0))
    assert names(leases) == ["bystander", "t"]
    assert store.finish_all([(lease, DIED) for lease in leases]) == ()
    for name in ("bystander", "t"):
        assert (row(store, name).deaths, row(store, name).suspect) == (0, True)
        assert "the engine of worker w0 died while it had this table and others" in row(store, name).error
    (lease,) = take(store, A)
    assert names([lease]) == ["bystander"]
    store.finish(lease, Success(epoch=0))
    for number in range(1, SET_ASIDE_AFTER + 1):
        (lease,) = take(store, worker(number))
        assert (names([lease]), row(store, "t").state) == (["t"], State.TIERING)
        assert store.finish_all([(lease, DIED)]) == ()
        assert store.finish_all([(lease, DIED)]) == (), "the first answer was lost"
        assert (row(store, "t").deaths, row(store, "t").suspect) == (number, True)
        assert "Spark is gone" in row(store, "t").error
    told = row(store, "t")
    assert told.state is State.STOPPED
    assert "set aside: 3 times in a row" in told.error
    assert "`laketier service resume`" in told.error
    assert store.rounds(told.id)[0].ending is LeaseEnd.STOPPED
    store.resume("s.t")
    assert (row(store, "t").deaths, row(store, "t").state) == (0, State.SCHEDULED)


def test_a_table_whose_tasks_die_alone_is_set_aside_whatever_runs_beside_it(store: StateStore, clock: Clock) -> None:
    store.register([table("a"), table("t")])
    failed = Failure("the Spark job ended without answers", True, death=Death.TASK)
    for number in range(SET_ASIDE_AFTER_TASKS):
        leases = take(store, A) or take(store, A)
        ours = [lease for lease in leases if lease.table.source_table == "t"]
        store.finish_all([(lease, failed if lease in ours else Success(epoch=number)) for lease in leases])
        assert len(ours) == 1
        assert (row(store, "t").deaths, row(store, "t").suspect) == (number + 1, True)
        assert (row(store, "a").deaths, row(store, "a").suspect) == (0, False)
        clock.pass_seconds(600)
        store.pause("s.a")  # else it is leased first
    assert row(store, "t").state is State.STOPPED
    assert "the last time a task of worker a died, in a job that had this table alone" in row(store, "t").error


def test_the_only_table_of_a_service_is_not_set_aside_for_lost_hosts(store: StateStore, clock: Clock) -> None:
    """Three spot instances in a row stopped it for good."""
    left = [table("t"), table("paused"), table("stopped", refusal="its columns are unknown")]
    store.register([*left, table("gone")])
    store.register(left)
    store.pause("s.paused")
    waits = []
    for number in range(2 * SET_ASIDE_AFTER):
        assert names(die(store, clock, worker(number))) == ["t"]
        look_at_leases(store)
        told = row(store, "t")
        waits.append(0 if told.next_try_at is None else (told.next_try_at - clock.now) / 1000)
        clock.pass_seconds(waits[-1])
    assert waits[:2] == [0, 0], "each time its lease has run out"
    assert [most / 2 <= wait <= most for wait, most in zip(waits[2:], (5, 10, 20, 40), strict=True)] == 4 * [True]
    assert (told.state, told.deaths, told.suspect) == (State.FAILED, 2 * SET_ASIDE_AFTER, True)
    for error in (told.error, store.rounds(told.id)[0].error):
        assert "worker w5 died" in error
        assert "6 in a row. It is tried again, later each time, as no other table of the service is tiered" in error
    (lease,) = take(store, A)
    store.finish(lease, DIED)
    assert (row(store, "t").state, row(store, "t").deaths) == (State.FAILED, 7), "nor for lost engines"
    store.retier("s.t")
    (lease,) = take(store, A)
    store.finish(lease, Success(epoch=0))
    assert (row(store, "t").state, row(store, "t").deaths, row(store, "t").failures) == (State.SCHEDULED, 0, 0)


def test_the_only_table_of_a_service_is_set_aside_for_its_tasks(store: StateStore, clock: Clock) -> None:
    """The worker lives, and so does its host."""
    store.register([table("t")])
    for _ in range(SET_ASIDE_AFTER_TASKS):
        (lease,) = take(store, A)
        store.finish(lease, Failure("the Spark job ended without answers", True, death=Death.TASK))
        clock.pass_seconds(3600)
    assert row(store, "t").state is State.STOPPED


def test_two_tables_are_not_set_aside_in_one_call(store: StateStore, clock: Clock) -> None:
    """Where every task dies it is the executors."""
    store.register([table(f"t{number}") for number in range(4)])
    failed = Failure("the Spark job ended without answers", True, death=Death.TASK)
    for _ in range(40):
        store.finish_all([(lease, failed) for lease in take(store, A)])
        clock.pass_seconds(600)
    assert sum(each.table.state is State.STOPPED for each in store.snapshot()) == 1


def test_what_went_well_since_is_told_by_the_order_and_not_by_a_clock(store: StateStore, clock: Clock) -> None:
    clock.pass_seconds(3600)
    others = [table("good"), table("other", freshness_seconds=365 * 86_400)]
    store.register(others[:1])
    (lease,) = take(store, A)
    store.finish(lease, Success(epoch=0))
    store.pause("s.good")
    clock.pass_seconds(-3600)  # it was ahead, and was set right
    store.register(others)
    (lease,) = take(store, A)
    store.finish(lease, Success(epoch=0))

    def kill(*tables: str) -> State:
        store.register([*others, *(table(name) for name in tables)])
        for number in range(SET_ASIDE_AFTER):
            assert names(die(store, clock, worker(10 * len(tables) + number))) == [tables[-1]]
        for left in take(store, A):
            store.release(left)
        return row(store, tables[-1]).state

    assert kill("t0") is State.STOPPED
    assert kill("t0", "t1") is State.FAILED, "the good round was before"


@pytest.mark.parametrize("seed", deep_where([(seed,) for seed in range(3)], lambda seed: seed < 2))
def test_the_guilty_are_found_and_nobody_else(store: StateStore, clock: Clock, seed: int) -> None:
    """Some tables kill every worker that runs them; workers are also killed by hand, and are told to stop."""
    draw = random.Random(seed)
    everything = [f"t{number}" for number in range(12)]
    guilty = set(draw.sample(everything, 1 + seed % 3))
    store.register([table(name, priority=draw.randrange(2)) for name in everything])
    alive = worker(0)
    for number in range(1, 150):
        leases = take(store, alive, draw.choice([1, 3, 64]))
        killed = any(lease.table.source_table in guilty for lease in leases)
        if not killed:
            for lease in leases:
                store.finish(lease, Success(epoch=number))
        if draw.random() < 0.05 and len(take(store, alive)) > 1:
            killed = True  # by hand
        if killed:
            alive = worker(number)
        clock.pass_seconds(draw.choice([1, 10]))
    stopped = {each.table.source_table for each in store.snapshot() if each.table.state is State.STOPPED}
    assert stopped == guilty
    for name in set(everything) - guilty:
        assert row(store, name).rounds_total > 1


def test_a_database_of_the_version_before_is_taken_over(url: str) -> None:
    database = Database(url)
    config = Config()
    config.set_main_option("script_location", str(migrating.__file__).replace("migrate.py", "migrations"))
    config.set_main_option("path_separator", "os")
    with database.write() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.exec_driver_sql(
            "INSERT INTO tiering_workers VALUES ('w1', 'default', 'h', 1, '0', 1, 1)"
        )  # fmt: skip
        connection.exec_driver_sql(
            "INSERT INTO tiering_tables (id, service, source, source_table, table_id, format, target, pipeline, "
            "priority, freshness_seconds, state, paused, dropped_by_hand, fence, lease_owner, leased_at, lease_until, "
            "registered_at, due_at, failures, rounds_total, rows_total, bytes_total, files_total, bad_records_total) "
            "VALUES (7, 'default', 's', 't', '1', 'f', 'lake/t', 't', 0, 60, 'TIERING', 0, 0, 5, 'w1', 1, 2, 1, 1, 0, "
            "3, 4, 5, 6, 7)"
        )
    database.close()
    with StateStore.open(url) as opened:
        (lease,) = opened.acquire(A, 1, LEASE)
        assert (lease.fence, lease.table.rounds_total, lease.table.deaths) == (6, 3, 0)
        assert lease.table.suspect, "nobody knows what its worker had beside it"
