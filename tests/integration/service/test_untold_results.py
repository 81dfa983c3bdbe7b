"""The state database is away as rounds end: their results are stored once it is back."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from laketier.service.leases import WorkerLeases
from laketier.service.looked import SharedLook
from laketier.service.metrics import TableCollector
from laketier.service.schedule import State
from laketier.service.state import (
    Failure,
    LeaseEnd,
    Registration,
    StateError,
    StateStore,
    StateUnavailable,
    Success,
    Worker,
)
from laketier_verification.postgresql import PostgreSQL

HERE = Worker("a", "here", 1, "0")
DONE = Success(epoch=4, rows=7, bad_records=2, offsets='{"0": 9}')


def some_leases(store: StateStore, count: int) -> WorkerLeases:
    store.register(
        [
            Registration(source="s", table=f"t{n}", table_id="1", format="f", target=f"t{n}", pipeline=f"t{n}")
            for n in range(count)
        ]
    )
    leases = WorkerLeases(store, HERE, 120)
    leases.beat()
    return leases


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., sqlite3.Connection]]:
    """Locks the database that ``store`` has, as a backup or a stopped process does."""
    monkeypatch.setattr("laketier.service.state.database._BUSY_SECONDS", 0.01)
    connection = sqlite3.connect(tmp_path / "state.db", isolation_level=None)

    def lock(how: str = "EXCLUSIVE") -> sqlite3.Connection:
        connection.execute(f"BEGIN {how}")
        return connection

    yield lock
    connection.close()


@pytest.fixture
def store(locked: object, tmp_path: Path) -> Iterator[StateStore]:
    with StateStore.open(f"sqlite:///{tmp_path}/state.db") as opened:
        yield opened


def test_what_rounds_brought_while_the_database_was_locked_is_stored_once(
    store: StateStore, locked: Callable[..., sqlite3.Connection]
) -> None:
    leases = some_leases(store, 3)
    one, two, three = leases.take(9)
    lock = locked()
    leases.finish([(one, DONE)])
    leases.finish([(two, Failure("it was full", retryable=True))])
    leases.release(three)
    for _ in range(2):
        with pytest.raises(StateUnavailable, match="locked"):
            leases.tell()
    assert (leases.untold, len(leases)) == (3, 3), "their leases are renewed meanwhile"
    assert leases.abandon() == [], "none of their rounds is under way"
    lock.execute("ROLLBACK")
    leases.tell()
    leases.tell()
    assert (leases.untold, len(leases)) == (0, 0)
    first, second, third = (status.table for status in store.snapshot())
    assert (first.state, first.epoch, first.offsets) == (State.SCHEDULED, 4, DONE.offsets)
    assert (first.rounds_total, first.rows_total, first.bad_records_total) == (1, 7, 2)
    assert (second.state, second.error) == (State.FAILED, "it was full")
    assert third.state is State.PENDING
    assert [len(store.rounds(table.id)) for table in (first, second, third)] == [1, 1, 1]


def test_a_heartbeat_tells_what_waited(store: StateStore, locked: Callable[..., sqlite3.Connection]) -> None:
    leases = some_leases(store, 1)
    (lease,) = leases.take(9)
    lock = locked()
    leases.finish([(lease, DONE)])
    leases.beat()
    assert leases.untold == 1
    lock.execute("ROLLBACK")
    leases.beat()
    assert (leases.untold, store.snapshot()[0].table.rows_total) == (0, 7)


def test_a_worker_that_stood_still_takes_no_tables_from_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The heart beats in a thread, which may get its turn after the one that asks for tables."""
    now = 1_000.0
    monkeypatch.setattr("laketier.service.leases.time.monotonic", lambda: now)
    with StateStore.open(f"sqlite:///{tmp_path}/state.db", clock=lambda: int(now * 1000)) as store:
        leases = some_leases(store, 1)
        (lease,) = leases.take(1)
        now += 121
        assert leases.take(1) == ()
        assert not leases.is_lost(lease)
        leases.finish([(lease, DONE)])
        assert [status.table.rows_total for status in store.snapshot()] == [7]
    assert "no heartbeat was stored for 121.0 s, and a lease lasts 120 s" in caplog.text


def test_a_database_that_takes_no_writes_is_shown_as_such_though_it_can_be_read(
    store: StateStore, locked: Callable[..., sqlite3.Connection], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a full disk, where workers wait, nothing showed but a log that a line was added to twice a second."""
    leases = some_leases(store, 1)
    with StateStore.open(f"sqlite:///{tmp_path}/state.db") as readers:
        look = SharedLook(readers, 0, writer=store)

        def up() -> float:
            (family,) = [f for f in TableCollector(look, 120).collect() if f.name == "laketier_state_database_up"]
            return family.samples[0].value

        look.alive()
        assert up() == 1
        other = locked("IMMEDIATE")
        for _ in range(5):
            leases.beat()
        assert len([line for line in caplog.messages if "a heartbeat could not be stored" in line]) == 1
        assert look.now().statuses
        with pytest.raises(StateUnavailable, match="locked"):
            look.alive()
        assert up() == 0
        other.execute("ROLLBACK")
        caplog.set_level(logging.INFO)
        leases.beat()
        assert "the state database answers again" in caplog.text
        look.alive()
        assert up() == 1


def test_a_result_that_no_database_can_hold_keeps_neither_others_nor_the_heartbeats(
    store: StateStore, locked: Callable[..., sqlite3.Connection]
) -> None:
    leases = some_leases(store, 2)
    one, two = leases.take(9)
    lock = locked()
    leases.finish([(one, Success(rows=2**70)), (two, DONE)])
    lock.execute("ROLLBACK")
    leases.beat()
    assert (leases.untold, len(leases)) == (0, 0)
    assert [status.table.rows_total for status in store.snapshot()] == [0, 7]


def test_a_result_whose_answer_was_lost_counts_once(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    leases = some_leases(store, 1)
    (lease,) = leases.take(9)
    stored = store.finish_all

    def unanswered(results: object) -> object:
        stored(results)  # type: ignore[arg-type]
        raise StateUnavailable("the connection was closed")

    monkeypatch.setattr(store, "finish_all", unanswered)
    leases.finish([(lease, DONE)])
    monkeypatch.undo()
    leases.tell()
    table = store.snapshot()[0].table
    assert (table.rounds_total, table.rows_total, len(store.rounds(table.id))) == (1, 7, 1)


def test_a_result_that_the_database_refuses_holds_up_no_other(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = some_leases(store, 2)
    good, bad = leases.take(9)
    stored = store.finish_all

    def refusing(results: list[object]) -> object:
        if (bad, DONE) in results:
            raise StateError("the state database refused")
        return stored(results)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "finish_all", refusing)
    leases.finish([(bad, DONE), (good, DONE)])
    assert (leases.untold, len(leases)) == (0, 0)
    assert [status.table.rounds_total for status in store.snapshot()] == [1, 0]


def test_tables_of_a_file_that_are_gone_are_told_with_the_way_out(store: StateStore, tmp_path: Path) -> None:
    leases = some_leases(store, 1)
    (lease,) = leases.take(9)
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("ALTER TABLE tiering_tables RENAME TO elsewhere")
    connection.close()
    leases.finish([(lease, DONE)])
    with pytest.raises(StateUnavailable, match=r"or some of them\. Restore it whole, or name a new one"):
        leases.tell()
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("ALTER TABLE elsewhere RENAME TO tiering_tables")
    connection.close()
    leases.tell()
    assert store.snapshot()[0].table.rows_total == 7


def test_results_wait_for_a_server_that_is_stopped(server: PostgreSQL) -> None:
    with StateStore.open(server.new_database()) as store:
        leases = some_leases(store, 2)
        done, failed = leases.take(9)
        server.stop()
        try:
            leases.finish([(done, DONE), (failed, Failure("x", retryable=False))])
            with pytest.raises(StateUnavailable, match="did not answer"):
                leases.tell()
        finally:
            server.start()
        leases.tell()
        first, second = store.snapshot()
        assert (first.table.state, first.table.rows_total, second.table.state) == (State.SCHEDULED, 7, State.STOPPED)
        endings = [round_.ending for each in (first, second) for round_ in store.rounds(each.table.id)]
        assert endings == [LeaseEnd.TIERED, LeaseEnd.STOPPED]
