"""Workers whose state database is away, locked, lost, or not the only one."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from laketier.kit.failpoints import observed
from laketier.service.failpoints import COMMITTED
from laketier.service.leases import WorkerLeases
from laketier.service.schedule import State
from laketier.service.state import LeaseLost, StateStore, StateUnavailable, Worker
from tiering_service import PATIENCE_SECONDS, Service, until


def test_a_lost_state_database_does_not_fence_the_service_off(
    make: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    service = make("t")
    worker = service.worker()
    for number in range(3):
        service.lines["t"].append(number)
        worker.work_once()
        service.later()
    before = service.table("t").fence
    for path in service.folder.glob("state.db*"):
        path.unlink()
    service.lines["t"].append(3)
    again = service.worker()
    again.work_once()
    assert service.ids(again, "t") == [0, 1, 2, 3]
    table = service.table("t")
    assert (table.state, table.error) == (State.SCHEDULED, None)
    assert table.fence > before
    assert "continues with fence" in caplog.text


@pytest.mark.parametrize("is_restored", [False, True], ids=["a new one", "a backup"])
def test_a_worker_sees_that_its_state_file_is_another_one(make: Callable[..., Service], is_restored: bool) -> None:
    """It went on with the deleted one for ever, where no command reached it, and no other worker saw its leases."""
    service = make("t")
    service.lines["t"].append(0)
    worker = service.worker()
    worker.work_once()
    with StateStore.open(f"sqlite:///{service.folder}/state.db", service="tests") as other:
        with closing(sqlite3.connect(service.folder / "state.db")) as copied:
            copied.execute("VACUUM INTO ?", [str(service.folder / "backup.db")])
        (service.folder / "state.db").rename(service.folder / "away.db")
        for _ in range(3):
            with pytest.raises(StateUnavailable, match=r"database is gone, because .* Restore it, or start a worker"):
                worker.work_once()
        assert not (service.folder / "state.db").exists(), "an empty one would look like one that lost its tables"
        if is_restored:
            (service.folder / "backup.db").rename(service.folder / "state.db")
        service.lines["t"].append(1)
        service.later()
        again = worker if is_restored else service.worker()
        again.work_once()
        worker.work_once()
        assert [each.table.rows_total for each in other.snapshot()] == [2 if is_restored else 1]
    assert service.ids(worker, "t") == [0, 1]


def test_a_state_database_that_is_locked_as_a_round_ends_hears_of_it_later(
    make: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laketier.service.state.database._BUSY_SECONDS", 0.01)
    service = make("t")
    service.lines["t"].append(1, 2)
    worker = service.worker()
    other = sqlite3.connect(service.folder / "state.db", isolation_level=None, check_same_thread=False)

    def lock(point: str) -> None:
        if point == COMMITTED:
            other.execute("BEGIN EXCLUSIVE")

    with observed(lock), closing(other):
        worker.work_once()
        with pytest.raises(StateUnavailable):
            worker.work_once()
        other.execute("ROLLBACK")
        worker.work_once()
    table = service.table("t")
    assert (table.state, table.epoch, table.rows_total, table.rounds_total) == (State.SCHEDULED, 0, 2, 1)
    assert (service.ids(worker, "t"), table.fence) == ([1, 2], 1)


def test_a_worker_that_ends_tells_what_waited_for_the_state_database(
    make: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laketier.service.state.database._BUSY_SECONDS", 0.01)
    service = make("t")
    service.lines["t"].append(1, 2)
    worker = service.worker()
    other = sqlite3.connect(service.folder / "state.db", isolation_level=None, check_same_thread=False)
    tell_last = WorkerLeases.tell_last

    def lock(point: str) -> None:
        if point == COMMITTED:
            other.execute("BEGIN EXCLUSIVE")
            worker.stop()

    def free(leases: WorkerLeases, *rest: Any) -> None:
        assert leases.untold == 1
        other.execute("ROLLBACK")
        tell_last(leases, *rest)

    monkeypatch.setattr(WorkerLeases, "tell_last", free)
    with observed(lock), closing(other):
        assert worker.run()
    assert (service.table("t").state, service.table("t").rows_total) == (State.SCHEDULED, 2)


def test_a_fence_is_raised_by_its_holder_alone(make: Callable[..., Service]) -> None:
    service = make("t")
    worker = service.worker()
    (lease,) = worker.store.acquire(Worker.here(), 1, 60)
    raised = worker.store.raise_fence(lease, 41)
    assert (raised.fence, service.table("t").fence, raised.table.fence) == (42, 42, 42)
    with pytest.raises(LeaseLost):
        worker.store.raise_fence(lease, 100)
    assert service.table("t").fence == 42
    assert worker.store.raise_fence(raised, 7).fence == 42, "never lowered"
    worker.store.release(raised)


def test_two_services_on_one_lake_table_lose_no_row_and_are_told(
    make: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    """Each has a state database of its own: by the fence alone, it looks as if that had been restored."""
    service = make("t")
    one = service.worker()
    service.file.write_text(service.file.read_text().replace("state.db", "another.db"))
    other = service.worker()
    again = "Another service with the same name, and a state database of its own, tiers this table, too"
    for number in range(3):
        told = ("was lost or restored", again, "and it was raised here before")
        assert [text in caplog.text for text in told] == [number > 1, number > 1, False]
        service.lines["t"].append(number)
        for _ in range(3):
            service.later()
            one.work_once()
        service.lines["t"].append(10 + number)
        service.later()
        other.work_once()
    assert "and it was raised here before. Another service with the same name" in caplog.text
    assert service.ids(one, "t") == [0, 1, 2, 10, 11, 12]


@pytest.mark.parametrize("other", [None, "worker", "service"])
def test_another_service_whose_fences_go_in_step_is_told(
    make: Callable[..., Service], caplog: pytest.LogCaptureFixture, other: str | None
) -> None:
    service = make("t")
    one = another = service.worker()
    if other == "service":
        service.file.write_text(service.file.read_text().replace("state.db", "another.db"))
    if other:
        another = service.worker()
    for number in range(4):
        service.lines["t"].append(number)
        for _ in range(2):  # the second finds nothing to do
            service.later()
            (one, another)[number % 2].work_once()
    assert service.ids(one, "t") == [0, 1, 2, 3]
    assert service.table("t").fence == (4 if other == "service" else 8)
    assert "was lost or restored" not in caplog.text
    told = caplog.text.count("Another service with the same name, and a state database of its own")
    assert told == (2 if other == "service" else 0), "once by each worker"


def test_a_table_that_was_made_anew_looks_like_no_other_service(
    make: Callable[..., Service], caplog: pytest.LogCaptureFixture
) -> None:
    """Its leases and the epochs of its lake table begin again, and may go in step with those of the former one."""
    service = make("t")
    service.lines["t"].append(1)
    one, other = service.worker(), service.worker()
    for _ in range(3):  # all but the first find nothing to do
        service.later()
        one.work_once()
    service.lines["t"].create()
    shutil.rmtree(service.folder / "lake")
    for worker in (one, other):
        worker.tables.discover()
    for number, worker in enumerate([other, other, other, one], 2):
        service.lines["t"].append(number)
        service.later()
        worker.work_once()
    assert service.ids(one, "t") == [2, 3, 4, 5]
    assert "Another service with the same name" not in caplog.text


def test_sources_are_not_listed_while_the_state_database_is_away(
    make: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it could be registered: each look asked all sources for nothing, and said so, twice a second."""
    monkeypatch.setattr("laketier.service.state.database._BUSY_SECONDS", 0.01)
    service = make("t")
    worker = service.worker(idle_seconds=0.01)
    looks, tries = [], []
    discover, acquire = worker.tables.discover, worker.store.acquire
    monkeypatch.setattr(worker.tables, "discover", lambda: (looks.append(1), discover()))
    monkeypatch.setattr(worker.store, "acquire", lambda *given, **more: (tries.append(1), acquire(*given, **more))[1])
    with closing(sqlite3.connect(service.folder / "state.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        worker.tables.expire()
        running = threading.Thread(target=worker.run, daemon=True)
        running.start()
        try:
            until(lambda: len(tries) > 20)
            assert len(looks) <= 2, "one that began before it was known to be away may end, and another have begun"
            assert worker.tables.is_due
            other.execute("ROLLBACK")
            until(lambda: not worker.tables.is_due)
        finally:
            worker.stop()
            running.join(PATIENCE_SECONDS)
