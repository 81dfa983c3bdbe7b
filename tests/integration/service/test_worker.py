"""A worker in this process: what hangs, what is lost and what is made anew, on real logs and lakes."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lines_log.plugin import LinesLog, LinesSource

from laketier.config.service import load_service
from laketier.kit.failpoints import observed
from laketier.registry import open_lake
from laketier.rounds import LogAnswer, LogRound, LogTask, run_log_task
from laketier.rounds.log_engine import EngineDied, EngineLost, LocalEngine, LogEngine, TaskDied
from laketier.service import worker as working
from laketier.service.caught_up import TRUSTED_SECONDS
from laketier.service.failpoints import COMMITTED, PLANNED
from laketier.service.leases import WorkerLeases
from laketier.service.listing import list_all
from laketier.service.open_files import OpenFileKeeper
from laketier.service.schedule import State
from laketier.service.state import LeaseLost, RegisteredTable, StateStore, StateUnavailable, Success, Worker
from laketier.service.tables import ServiceTables
from laketier.service.worker import TieringWorker, WorkerSettings
from laketier.spi import BucketBounds, LogRange, LogSplit, ScanRequest, StorageError, TableLog
from laketier.tables.scan import scan
from laketier_verification.lines import CutLog, LinesTable

PATIENCE_SECONDS = 60


@dataclass
class Service:
    """A service over logs of JSON lines. The clock is the test's: rounds come when it says so."""

    folder: Path
    names: Sequence[str]
    now: int = 1_000_000
    engine: LogEngine = field(default_factory=lambda: LocalEngine(2))
    opened: list[StateStore] = field(default_factory=list)
    sink: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.lines = {name: LinesTable(self.folder / "logs", name).create() for name in self.names}
        sink = {"lake.format": "localfile", "lake.warehouse": str(self.folder / "lake"), **self.sink}
        document = {
            "name": "tests",
            "state": f"sqlite:///{self.folder}/state.db",
            "sources": {"src": {"type": "lines", "options": {"path": str(self.folder / "logs")}}},
            "defaults": {"freshness": "10s", "target": "db.{table}", "sink": sink},
            "tables": [{"source": "src"}],
        }
        self.file = self.folder / "service.yaml"
        self.file.write_text(json.dumps(document))

    def worker(self, patience: float = PATIENCE_SECONDS, **settings: Any) -> TieringWorker:
        """A new one, which knows all tables."""
        described = load_service(self.file)
        store = StateStore.open(described.state, service=described.name, clock=lambda: self.now)
        self.opened.append(store)
        tables = ServiceTables(described, store, origin="the test")
        tables.discover()
        given = WorkerSettings(patience_seconds=patience, drain_seconds=PATIENCE_SECONDS, **settings)
        open_files = OpenFileKeeper(tables) if isinstance(self.engine, LocalEngine) else None
        return TieringWorker(store, tables, self.engine, given, clock=lambda: self.now, open_files=open_files)

    def later(self) -> None:
        self.now += 3_600_000

    def table(self, name: str) -> RegisteredTable:
        return next(each.table for each in self.opened[-1].snapshot() if each.table.source_table == name)

    def ids(self, worker: TieringWorker, name: str) -> list[int]:
        lake = open_lake(worker.tables.table(f"src.{name}").config)
        _, batches = scan(lake.source(lake.load_table()), ScanRequest())
        return sorted(row["id"] for batch in batches for row in batch.to_pylist())


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    made: list[Service] = []

    def make(*names: str, **sink: str) -> Service:
        made.append(Service(tmp_path, names, sink=sink))
        return made[-1]

    yield make
    for service in made:
        for store in service.opened:
            store.close()


def test_a_change_that_the_lake_cannot_follow_stops_its_table_alone(make: Callable[..., Service]) -> None:
    service = make("a", "b")
    worker = service.worker()
    for lines in service.lines.values():
        lines.append(1)
    worker.work_once()
    service.later()
    service.lines["a"].describe(columns={"id": "int64", "text": "int64"})
    service.lines["b"].describe(columns={"id": "int64", "text": "string", "more": "string"})
    for lines in service.lines.values():
        lines.append(2)
    worker.tables.discover()
    worker.work_once()
    assert (service.ids(worker, "a"), service.ids(worker, "b")) == ([1], [1, 2])
    stopped = service.table("a")
    assert stopped.state is State.STOPPED
    assert "column 'text' is int64 in the input and string in the table" in str(stopped.error)
    assert service.table("b").state is State.SCHEDULED


def test_a_schema_that_changes_in_a_round_is_read_anew(make: Callable[..., Service]) -> None:
    service = make("t")
    worker = service.worker()
    lines = service.lines["t"]
    lines.append_raw('{"id": 1, "text": "a", "more": "kept"}')

    def add_a_column(name: str) -> None:
        if name == PLANNED:
            lines.describe(columns={"id": "int64", "text": "string", "more": "string"})

    with observed(add_a_column):
        worker.work_once()
    failed = service.table("t")
    assert failed.state is not State.STOPPED
    assert "changed while it was read" in str(failed.error)
    assert worker.tables.is_due
    worker.tables.discover()
    service.later()
    worker.work_once()
    lake = open_lake(worker.tables.table("src.t").config)
    _, batches = scan(lake.source(lake.load_table()), ScanRequest())
    assert [row for batch in batches for row in batch.to_pylist()] == [{"id": 1, "text": "a", "more": "kept"}]


def test_a_round_that_merged_with_an_older_snapshot_is_merged_anew_at_once(make: Callable[..., Service]) -> None:
    service = make("t")
    document = json.loads(service.file.read_text())
    document["defaults"]["primary-key"] = ["id"]
    service.file.write_text(json.dumps(document))
    worker = service.worker()
    lines = service.lines["t"]
    lines.append(1, 2)
    worker.work_once()
    service.later()
    lines.append_raw('{"id": 1, "text": "newer"}')
    config = worker.tables.table("src.t").config
    others = replace(config, pipeline="another")

    def commit(name: str) -> None:
        if name == PLANNED:
            other = LogRound(worker.tables.log(worker.tables.table("src.t")), others)
            other.finish([run_log_task(task) for task in other.plan()])

    with observed(commit):
        worker.work_once()
    failed = service.table("t")
    assert failed.state is State.FAILED
    assert "the table changed while rows were merged" in str(failed.error)
    worker.work_once()
    assert service.table("t").state is State.SCHEDULED, "though no time went by"
    lake = open_lake(config)
    _, batches = scan(lake.source(lake.load_table()), ScanRequest())
    rows = [(row["id"], row["text"]) for batch in batches for row in batch.to_pylist()]
    assert sorted(rows) == [(1, "newer"), (2, "row 2")]


def test_a_table_that_a_worker_does_not_know_yet_is_tried_again(make: Callable[..., Service]) -> None:
    """As a broker that has just begun lists a part of its topics, and as another worker has seen a topic first."""
    service = make("t")
    worker = service.worker()
    service.lines["new"] = LinesTable(service.folder / "logs", "new").create()
    service.lines["new"].append(1)
    service.worker()  # registers it
    assert worker.tables.known("src.new") is None
    assert not worker.tables.is_due, "who only shows it has no source listed"
    worker.work_once()
    assert service.table("new").state is State.FAILED, service.table("new").error
    assert worker.tables.is_due
    worker.tables.discover()
    service.later()
    worker.work_once()
    assert service.table("new").state is State.SCHEDULED
    assert service.ids(worker, "new") == [1]


def test_a_log_that_was_opened_again_is_closed_once_nobody_reads_it(
    make: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    service = make("idle", "read")

    def close(log: LinesLog) -> None:
        if log.folder.is_relative_to(service.folder):  # and of no test before
            closed.append(log.folder.name)

    monkeypatch.setattr(LinesLog, "close", close)
    tables = service.worker().tables
    read = tables.log(tables.table("src.read"))
    tables.discover()
    assert closed == ["idle"]
    tables.discover()
    assert sorted(closed) == ["idle", "idle", "read"]
    assert read.bounds(), "it is still read"
    del read
    assert sorted(closed) == ["idle", "idle", "read", "read"]
    tables.close()
    assert sorted(closed) == ["idle"] * 3 + ["read"] * 3


def test_a_log_that_its_source_gives_again_stays_open(
    make: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make("t")
    given: dict[str, TableLog] = {}
    closed: list[TableLog] = []
    opened = LinesSource.open
    monkeypatch.setattr(
        LinesSource, "open", lambda source, name, options: given.setdefault(name, opened(source, name, options))
    )
    monkeypatch.setattr(LinesLog, "close", lambda log: closed.append(log))
    tables = service.worker().tables
    tables.discover()
    assert given["t"] not in closed
    tables.close()
    assert given["t"] in closed


@dataclass
class CaughtUp:
    """A table whose one row is in the lake, and whose lake folder was taken away: a worker that looks for it makes it
    anew, so that it is seen to have looked."""

    service: Service
    worker: TieringWorker

    def take_away(self) -> None:
        shutil.rmtree(self.service.folder / "lake")

    def looked(self, worker: TieringWorker | None = None) -> bool:
        self.service.later()
        (worker or self.worker).work_once()
        assert self.service.table("t").state is State.SCHEDULED, self.service.table("t").error
        return (self.service.folder / "lake").exists()


@pytest.fixture
def caught_up(make: Callable[..., Service]) -> CaughtUp:
    service = make("t")
    worker = service.worker()
    service.lines["t"].append(1)
    worker.work_once()
    found = CaughtUp(service, worker)
    found.take_away()
    return found


def test_a_caught_up_table_costs_no_look_into_the_lake(caught_up: CaughtUp) -> None:
    rounds = caught_up.service.table("t").rounds_total
    for _ in range(3):
        assert not caught_up.looked()
    table = caught_up.service.table("t")
    assert (table.rounds_total, table.lag_offsets, table.offsets) == (rounds + 3, 0, '{"0":1}')
    caught_up.service.lines["t"].append(2)
    assert caught_up.looked()
    assert caught_up.service.ids(caught_up.worker, "t") == [1, 2], "the lake decides where the log goes on"


def test_a_caught_up_table_that_another_worker_had_is_looked_at(caught_up: CaughtUp) -> None:
    other = caught_up.service.worker()
    assert caught_up.looked(other), "it never saw the lake table"
    caught_up.take_away()
    assert caught_up.looked(), "another worker had it in between"
    caught_up.take_away()
    assert not caught_up.looked()


def test_a_caught_up_table_whose_lost_round_fails_meanwhile_is_no_failure(caught_up: CaughtUp) -> None:
    """The round of a lease that was lost may end at any time, beside that of the next lease."""

    def forget(point: str) -> None:
        if point == PLANNED:
            caught_up.worker._caught_up._seen.clear()

    with observed(forget):
        assert not caught_up.looked()
    assert caught_up.service.table("t").state is State.SCHEDULED
    assert caught_up.looked()


def test_a_caught_up_table_with_a_new_bucket_that_expired_unread_is_looked_at(caught_up: CaughtUp) -> None:
    lines = caught_up.service.lines["t"]
    lines.append(2, bucket=1)
    lines.expire(1, bucket=1)
    caught_up.service.later()
    caught_up.worker.work_once()
    assert (caught_up.service.folder / "lake").exists()


def test_a_caught_up_table_with_a_new_column_is_looked_at(caught_up: CaughtUp) -> None:
    assert not caught_up.looked()
    caught_up.service.lines["t"].describe(columns={"id": "int64", "text": "string", "more": "string"})
    caught_up.worker.tables.discover()
    assert caught_up.looked()


def test_a_caught_up_table_is_looked_at_now_and_then(caught_up: CaughtUp) -> None:
    later = [0.0]
    caught_up.worker._caught_up.clock = lambda: later[0]
    caught_up.service.lines["t"].append(2)
    assert caught_up.looked()
    caught_up.take_away()
    later[0] = TRUSTED_SECONDS - 1
    assert not caught_up.looked()
    later[0] = TRUSTED_SECONDS
    assert caught_up.looked(), "a check that skipped the look does not count as one"


def test_a_round_that_is_out_of_time_is_followed_by_the_next_at_once(
    make: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    class OutOfTime(LocalEngine):
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            assert all((task.within is None) == (task.not_after is None) for task in tasks)
            return super().run([task if task.within is None else replace(task, not_after=0) for task in tasks])

    service = make("t")
    service.engine = OutOfTime(2)
    worker = service.worker()
    log = worker.tables.log
    monkeypatch.setattr(worker.tables, "log", lambda table: CutLog(log(table)))
    service.lines["t"].append(0, 1, 2, 3, 4)
    for reached, state in ((2, State.PENDING), (4, State.PENDING), (5, State.SCHEDULED)):
        worker.work_once()
        assert service.ids(worker, "t") == list(range(reached))
        table = service.table("t")
        assert (table.state, table.lag_offsets) == (state, 5 - reached)


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


def test_what_a_round_leaves_is_told(make: Callable[..., Service]) -> None:
    service = make("t")
    document = json.loads(service.file.read_text())
    document["defaults"] |= {"max-offsets-per-round": 3, "on-bad-record": "drop"}
    service.file.write_text(json.dumps(document))
    log = service.lines["t"]

    def told() -> tuple[int | None, float | None, int, float | None]:
        (status,) = service.opened[-1].snapshot()
        last = status.last_round
        assert last is not None
        assert (last.lag_offsets, last.lag_seconds) == (status.table.lag_offsets, status.table.lag_seconds)
        return status.table.lag_offsets, status.table.lag_seconds, last.bad_records, status.behind_seconds

    log.append(0, 1)
    worker = service.worker()
    worker.work_once()
    assert told() == (0, 0.0, 0, 0.0)
    complete_at = service.now
    service.later()
    log.append(2, 3, 4)
    log.append_raw("not JSON", "nor this")
    os.utime(log.folder / "0.jsonl", ((complete_at + 5_000) / 1000,) * 2)
    worker.work_once()
    assert told() == (2, 5.0, 0, 3600.0), "the newest record that is left was written 5 s after all was there"
    worker.work_once()
    assert told() == (0, 0.0, 2, 0.0)
    (table,) = (status.table for status in service.opened[-1].snapshot())
    assert table.bad_records_total == 2
    ends = [(each.range_start, each.range_end) for each in reversed(service.opened[-1].rounds(table.id))]
    assert ends == [("{}", '{"0":2}'), ('{"0":2}', '{"0":5}'), ('{"0":5}', '{"0":7}')]


def test_a_name_that_clashes_stops_its_table_alone(make: Callable[..., Service]) -> None:
    service = make("a b", "a_b", "-odd name", "z")
    for name in service.names:
        service.lines[name].append(1)
    worker = service.worker()
    worker.work_once()
    for name in ("a_b", "-odd name", "z"):
        assert service.ids(worker, name) == [1]
        assert service.table(name).state is State.SCHEDULED
    stopped = service.table("a b")
    assert (stopped.state, stopped.rounds_total) == (State.STOPPED, 0)
    assert "src.a b and src.a_b would both go to db.a_b" in (stopped.error or "")


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
        assert ("was lost or restored" in caplog.text, again in caplog.text) == (number > 1, False)
        service.lines["t"].append(number)
        for _ in range(3):
            service.later()
            one.work_once()
        service.lines["t"].append(10 + number)
        service.later()
        other.work_once()
    assert again in caplog.text
    assert service.ids(one, "t") == [0, 1, 2, 10, 11, 12]


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
            _until(lambda: len(tries) > 20)
            assert len(looks) <= 2, "one that began before it was known to be away may end, and another have begun"
            assert worker.tables.is_due
            other.execute("ROLLBACK")
            _until(lambda: not worker.tables.is_due)
        finally:
            worker.stop()
            running.join(PATIENCE_SECONDS)


def test_a_table_whose_source_hangs_holds_up_no_other(make: Callable[..., Service]) -> None:
    service = make("hangs", "works")
    worker = service.worker(patience=0.2)
    for lines in service.lines.values():
        lines.append(1)
    log = service.lines["hangs"].folder / "0.jsonl"
    aside = log.rename(log.with_suffix(".aside"))
    os.mkfifo(log)  # opened for reading, it waits for a writer
    _work_until(worker, lambda: service.table("works").rounds_total == 1)
    service.lines["works"].append(2)
    service.later()
    _work_until(worker, lambda: service.table("works").rounds_total == 2)
    assert service.table("hangs").state is State.TIERING
    with log.open("a"):  # what hung goes on, and finds nothing in it
        aside.replace(log)
    _work_until(worker, lambda: service.table("hangs").state is State.SCHEDULED)
    service.later()
    _work_until(worker, lambda: service.table("hangs").rounds_total == 2)
    assert service.ids(worker, "hangs") == [1]
    assert service.ids(worker, "works") == [1, 2]


def test_many_tables_whose_source_hangs_hold_up_no_other(make: Callable[..., Service]) -> None:
    """Topics whose partitions have no leader had all places of a worker, for as long as their source is asked."""
    hanging = [f"hangs_{number}" for number in range(6)]
    service = make(*hanging, "works")
    worker = service.worker(patience=0.2, tables=4, threads=2)
    for lines in service.lines.values():
        lines.append(1)
    for name in hanging:
        log = service.lines[name].folder / "0.jsonl"
        log.rename(log.with_suffix(".aside"))
        os.mkfifo(log)  # opened for reading, it waits for a writer
    _work_until(worker, lambda: service.table("works").rounds_total == 1)
    assert {service.table(name).state for name in hanging} == {State.TIERING}
    service.lines["works"].append(2)
    service.later()
    _work_until(worker, lambda: service.table("works").rounds_total == 2)
    for name in hanging:
        log = service.lines[name].folder / "0.jsonl"
        with log.open("a"):  # what hung goes on, and finds nothing in it
            log.with_suffix(".aside").replace(log)
    _work_until(worker, lambda: {service.table(name).state for name in hanging} == {State.SCHEDULED})
    service.later()
    _work_until(worker, lambda: all(service.ids(worker, name) == [1] for name in hanging))


def test_many_tables_whose_commits_hang_hold_up_no_other(make: Callable[..., Service]) -> None:
    """A lake, or a source that is asked for its table once more, that went silent after its rounds were planned had all
    room of a worker, for as long as it is waited for."""
    hanging = [f"hangs_{number}" for number in range(4)]
    service = make(*hanging, "works")
    described = {name: service.lines[name].folder / "table.json" for name in hanging}
    to_come = dict(described)

    class SilentOnceItIsRead(LocalEngine):
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            answers = list(super().run(tasks))
            for answer in answers:
                if path := to_come.pop(answer.table.partition(",")[0].removeprefix("src."), None):
                    path.rename(path.with_suffix(".aside"))
                    os.mkfifo(path)  # opened for reading, it waits for a writer
            yield from answers

    service.engine = SilentOnceItIsRead(2)
    worker = service.worker(patience=0.2, tables=4, threads=2)
    for lines in service.lines.values():
        lines.append(1)
    _work_until(worker, lambda: service.table("works").rounds_total == 1)
    assert {service.table(name).state for name in hanging} == {State.TIERING}
    service.lines["works"].append(2)
    service.later()
    _work_until(worker, lambda: service.table("works").rounds_total == 2)
    for path in described.values():
        with path.open("a"):  # what hung goes on, and finds nothing in it
            path.with_suffix(".aside").replace(path)
    _work_until(worker, lambda: {service.table(name).state for name in hanging}.isdisjoint({State.TIERING}))
    service.later()
    _work_until(worker, lambda: all(service.ids(worker, name) == [1] for name in hanging))


class PanicException(BaseException):
    """As libraries in Rust raise it: no `Exception`."""


@dataclass(frozen=True)
class _Panicking(CutLog):
    at: str = ""

    def bounds(self) -> Mapping[str, BucketBounds]:
        self._panic("bounds")
        return super().bounds()

    def plan(self, wanted: LogRange) -> Sequence[LogSplit]:
        self._panic("plan")
        return super().plan(wanted)

    def read(self, split: LogSplit, **options: Any) -> Iterator[pa.RecordBatch]:
        yield from super().read(split, **options)
        self._panic("read")

    def _panic(self, step: str) -> None:
        if self.table.name == "panics" and step == self.at:
            raise PanicException("index out of bounds")


@pytest.mark.parametrize("step", ["bounds", "plan", "read", "publish"])
def test_a_panic_of_a_library_is_its_tables_alone(
    make: Callable[..., Service], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    service = make("panics", "works")
    for lines in service.lines.values():
        lines.append(1)
    worker = service.worker()
    log = worker.tables.log
    monkeypatch.setattr(worker.tables, "log", lambda table: _Panicking(log(table), step))
    left = [1]

    def panic(point: str) -> None:
        if point == "publish.before" and step == "publish" and left:
            left.pop()
            raise PanicException("index out of bounds")

    with observed(panic):
        worker.work_once()
        _until(lambda: State.FAILED in {service.table(name).state for name in service.names})
    failed = next(service.table(name) for name in service.names if service.table(name).state is State.FAILED)
    assert "index out of bounds" in (failed.error or "")
    worker.stop()
    assert worker.run(), "nothing is under way any more"
    monkeypatch.undo()
    worker = service.worker()
    service.later()
    _work_until(worker, lambda: {service.table(name).state for name in service.names} == {State.SCHEDULED})
    assert [service.ids(worker, name) for name in service.names] == [[1], [1]]


def test_an_answer_that_comes_twice_fails_no_other_table(make: Callable[..., Service]) -> None:
    service = make("a", "b", "c")
    for lines in service.lines.values():
        lines.append(1)
    worker = service.worker()
    engine = worker.engine

    class Twice:
        def run(self, tasks: Sequence[Any]) -> Iterator[Any]:
            for answer in engine.run(tasks):
                yield answer
                yield answer

    worker.engine = Twice()
    _work_until(worker, lambda: {service.table(name).state for name in service.names} == {State.SCHEDULED})
    assert [service.ids(worker, name) for name in service.names] == [[1], [1], [1]]
    assert {service.table(name).rounds_total for name in service.names} == {1}


def test_a_worker_whose_engine_is_gone_ends_and_leaves_its_tables_to_others(make: Callable[..., Service]) -> None:
    service = make("a", "b")
    for lines in service.lines.values():
        lines.append(1)
    worker = service.worker()

    class Gone:
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            del tasks
            raise EngineLost("the engine is gone")

    worker.engine = Gone()
    assert worker.run(), "nothing is under way any more"
    assert isinstance(worker.engine_lost, EngineLost)
    other = service.worker()
    other.work_once()
    assert [service.ids(other, name) for name in service.names] == [[1], [1]], "at once, by the same clock"


@pytest.mark.parametrize("what", ["target", "warehouse"])
def test_a_worker_with_an_older_file_writes_to_no_older_target(make: Callable[..., Service], what: str) -> None:
    """Its rows went on into the old lake table, and the state told that the new one had them."""
    service = make("a")
    older = service.worker()
    service.lines["a"].append(1)
    older.work_once()
    document = json.loads(service.file.read_text())
    if what == "target":
        document["defaults"]["target"] = "moved.{table}"
    else:
        document["defaults"]["sink"]["lake.warehouse"] = str(service.folder / "moved")
    service.file.write_text(json.dumps(document))
    newer = service.worker()
    assert service.table("a").state is State.STOPPED
    newer.store.resume("src.a")
    service.lines["a"].append(2)
    older.work_once()
    assert service.ids(older, "a") == [1]
    assert "this worker's file names another lake table" in str(service.table("a").error)
    assert f"db.a{'' if what == 'target' else f' in {service.folder}/lake'}" in str(service.table("a").error)
    service.later()
    newer.work_once()
    assert service.ids(newer, "a") == [1, 2], "from the beginning, as the one who resumed it was told"


def test_a_worker_prunes_the_history_of_rounds(make: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> None:
    """It grew until the disk of the state database was full."""
    service = make("a")
    worker = service.worker()
    for number in range(4):
        service.lines["a"].append(number)
        worker.work_once()
        service.later()
    assert len(worker.store.rounds(service.table("a").id)) == 4
    monkeypatch.setattr(working, "KEPT_ROUNDS", 2)
    monkeypatch.setattr(working, "KEPT_WORKERS", 1)
    worker.store.heartbeat(Worker("old", "gone", 1, "0"), [], 30)
    with sqlite3.connect(service.folder / "state.db") as state:
        state.execute("UPDATE tiering_workers SET heartbeat_at = heartbeat_at - 90000000 WHERE id = 'old'")
    last = service.worker()
    last.settings = replace(last.settings, until_idle=True)
    assert last.run()
    left = [ended.fence for ended in last.store.rounds(service.table("a").id)]
    assert left in ([5, 4], [5, 4, 3]), "its own round may have ended later"
    assert "old" not in {each.worker.id for each in last.store.workers()}


@pytest.mark.parametrize("lost", [False, True])
def test_no_worker_that_ends_waits_for_a_history_of_years(
    make: Callable[..., Service], monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """A state database that nobody pruned may take hours: the tables of a lost engine waited, and a run until idle was
    told to have cut off its rounds."""
    service = make("a")
    service.lines["a"].append(1)
    worker = service.worker()
    worker.settings = replace(worker.settings, until_idle=True, drain_seconds=10.0)
    monkeypatch.setattr(working, "_PRUNE_AT_LEAST_SECONDS", 0.0)
    ended = threading.Event()

    def prune(keep_rounds: int, stopping: Callable[[], bool]) -> int:
        while not stopping() and not ended.wait(0.01):
            pass
        return keep_rounds

    class Gone:
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            del tasks
            raise EngineLost("the engine is gone")

    monkeypatch.setattr(worker.store, "prune", prune)
    worker.engine = Gone() if lost else worker.engine
    try:
        assert worker.run(), "nothing is under way any more"
    finally:
        ended.set()


def test_the_tables_of_an_engine_that_died_are_suspects(make: Callable[..., Service]) -> None:
    """One of them may have killed it, and would kill that of the next worker, too."""
    service = make("a", "b")
    for lines in service.lines.values():
        lines.append(1)
    worker = service.worker()

    class Dying:
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            del tasks
            raise EngineDied("the engine died")

    worker.engine = Dying()
    assert worker.run()
    assert isinstance(worker.engine_lost, EngineDied)
    assert [each.table.suspect for each in service.opened[-1].snapshot()] == [True, True]
    other = service.worker()
    for _ in service.names:
        other.work_once()
    assert [service.ids(other, name) for name in service.names] == [[1], [1]], "one after the other, at once"
    assert [each.table.suspect for each in service.opened[-1].snapshot()] == [False, False]


@pytest.mark.parametrize("died", [EngineDied, TaskDied])
def test_a_worker_whose_engine_goes_as_it_is_told_to_stop_ends_well(
    make: Callable[..., Service], died: type[StorageError]
) -> None:
    """A signal to all processes of a unit ends Spark's JVM and its tasks beside the worker: a supervisor should see no
    failure, and the table is not charged."""
    service = make("a")
    service.lines["a"].append(1)
    worker = service.worker()

    class Ended:
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            worker.stop()
            if died is EngineDied:
                raise died("the engine died")
            yield from (LogAnswer(task.table, error=died("it died"), index=task.index) for task in tasks)

    worker.engine = Ended()
    assert worker.run()
    assert worker.engine_lost is None
    (seen,) = service.opened[-1].snapshot()
    assert (seen.table.suspect, seen.table.deaths) == (False, 0)
    service.later()
    other = service.worker()
    other.work_once()
    assert service.ids(other, "a") == [1]


def test_a_source_that_ends_the_process_holds_up_no_other(make: Callable[..., Service]) -> None:
    service = make("exits", "works")
    service.lines["works"].append(1)
    worker = service.worker()
    source = worker.tables._sources["src"].source

    class Exiting(type(source)):  # type: ignore[misc]
        def open(self, name: str, options: Any) -> TableLog:
            if name == "exits":
                sys.exit(3)
            opened: TableLog = super().open(name, options)
            return opened

        def list_tables(self) -> Sequence[str]:
            sys.exit(3)

    source.__class__ = Exiting
    worker.tables.discover()
    listed = list_all(worker.tables._sources)["src"]
    assert isinstance(listed, StorageError)
    assert "SystemExit: 3" in str(listed)
    worker.tables.discover({"src": ["exits", "works"]})
    worker.work_once()
    assert service.ids(worker, "works") == [1]


def test_two_rounds_of_one_table_that_end_at_a_time_keep_nobody_from_ending(make: Callable[..., Service]) -> None:
    service = make("again", "other")
    worker = service.worker()
    worker.tables.discover()
    older = {lease.table.name: lease for lease in worker._leases.take(2)}
    service.later()
    newer = {lease.table.name: lease for lease in worker._leases.take(2)}
    assert newer["src.again"].fence > older["src.again"].fence
    ended = [older["src.again"], newer["src.other"], newer["src.again"]]
    worker._leases.finish([(lease, Success()) for lease in ended])
    assert {service.table(name).state for name in ("again", "other")} == {State.SCHEDULED}


@dataclass
class _Halting:
    """An engine that tells the answers of one table, and the rest when it is let go."""

    first: str
    go: threading.Event = field(default_factory=threading.Event)

    def run(self, tasks: Sequence[LogTask]) -> Iterable[LogAnswer]:
        ordered = sorted(tasks, key=lambda task: task.log.table.name != self.first)
        yield from LocalEngine(1).run(ordered[:1])
        assert self.go.wait(PATIENCE_SECONDS)
        yield from LocalEngine(1).run(ordered[1:])


def test_a_table_is_committed_before_the_others_of_its_job_have_answered(make: Callable[..., Service]) -> None:
    service = make("quick", "slow")
    for lines in service.lines.values():
        lines.append(1)
    service.engine = engine = _Halting("quick")
    worker = service.worker()
    group = threading.Thread(target=worker.work_once)
    group.start()
    _until(lambda: service.table("quick").rounds_total == 1)
    assert service.table("slow").rounds_total == 0
    engine.go.set()
    group.join(PATIENCE_SECONDS)
    assert service.table("slow").rounds_total == 1


def test_a_worker_told_to_stop_gives_back_what_has_not_begun(make: Callable[..., Service]) -> None:
    service = make("a", "b")
    for lines in service.lines.values():
        lines.append(1)
    worker = service.worker()

    def stop(point: str) -> None:
        if point == "service.leased":
            worker.stop()

    with observed(stop):
        assert worker.run()
    assert {service.table(name).state for name in "ab"} == {State.PENDING}
    assert service.table("a").lease_owner is None


def test_a_source_table_made_anew_stops_and_the_old_rows_stay(make: Callable[..., Service]) -> None:
    service = make("t")
    service.lines["t"].append(1)
    worker = service.worker()
    worker.work_once()
    service.later()
    service.lines["t"].append(2)

    def anew(point: str) -> None:
        if point == "service.planned":
            service.lines["t"].create().append(7, 8)

    with observed(anew):
        worker.work_once()
    assert service.ids(worker, "t") == [1]
    assert "recreated while it was read" in (service.table("t").error or "")
    assert worker.tables.is_due, "the new table is looked for at once"


def test_tables_that_can_not_be_listed_do_not_end_the_worker(make: Callable[..., Service]) -> None:
    service = make("t", "damaged")
    service.lines["t"].append(1)
    worker = service.worker()
    (service.lines["damaged"].folder / "table.json").write_text("{")
    worker.tables.discover()
    worker.work_once()
    assert service.ids(worker, "t") == [1]


def _work_until(worker: TieringWorker, condition: Callable[[], bool]) -> None:
    def work() -> bool:
        if not (reached := condition()):
            worker.work_once()
        return reached

    _until(work)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        threading.Event().wait(0.02)


OPEN = {"lake.localfile.file-format": "json", "lake.localfile.open-files": "true"}


def _plain(service: Service) -> list[Path]:
    return sorted((service.folder / "lake/db/t").glob("*.json"))


def _stay_open(worker: TieringWorker) -> list[threading.Thread]:
    """What `TieringWorker.run` does beside the rounds."""
    assert worker.open_files is not None
    thread = threading.Thread(target=worker.open_files.run_until, args=(worker._stopping, lambda key: False))
    thread.start()
    return [thread]


def test_rounds_of_a_worker_append_to_one_file(make: Callable[..., Service]) -> None:
    service = make("t", **OPEN)
    worker = service.worker()
    for epoch in range(4):
        service.lines["t"].append(epoch)
        worker.work_once()
        service.later()
        assert service.ids(worker, "t") == list(range(epoch + 1))
    assert _plain(service) == []
    worker.stop()
    assert worker.run()
    assert len(_plain(service)) == 1
    assert service.ids(worker, "t") == list(range(4))


def test_another_worker_finishes_the_file_of_one_that_is_gone(make: Callable[..., Service]) -> None:
    service = make("t", **OPEN)
    first, second = service.worker(), service.worker()
    for epoch, worker in enumerate((first, first, second, first, second)):
        service.lines["t"].append(epoch)
        worker.work_once()
        service.later()
    assert service.ids(first, "t") == list(range(5))
    assert len(_plain(service)) == 3
    for worker in (first, second):
        worker.stop()
        assert worker.run()
    assert len(_plain(service)) == 4
    assert service.ids(first, "t") == list(range(5))


def test_a_file_that_got_old_while_no_rows_came_is_finished(make: Callable[..., Service]) -> None:
    service = make("t", **OPEN, **{"lake.localfile.target-file-seconds": "1"})
    worker = service.worker()
    assert worker.open_files is not None
    worker.open_files.idle_seconds = 0.01
    service.lines["t"].append(1)
    worker.work_once()
    (thread,) = _stay_open(worker)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not _plain(service) and time.monotonic() < deadline:
        thread.join(0.01)
    worker.stop()
    thread.join()
    assert len(_plain(service)) == 1
    assert worker.run()
    assert service.ids(worker, "t") == [1]


@contextmanager
def _few_descriptors() -> Iterator[None]:
    """Within the block the process has more than half of its descriptors in use."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * len(os.listdir("/dev/fd")) - 10, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_open_files_leave_descriptors_for_rounds(make: Callable[..., Service]) -> None:
    """Tables that came first keep their files; others have theirs finished by each round, and none is stuck."""
    service = make("a", **OPEN)
    worker = service.worker()
    service.lines["a"].append(0)
    worker.work_once()
    for name in ("b", "c"):
        service.lines[name] = LinesTable(service.folder / "logs", name).create()
    worker.tables.discover()
    with _few_descriptors():
        for epoch in range(1, 4):
            service.later()
            for lines in service.lines.values():
                lines.append(epoch)
            worker.work_once()
        finished = {name: len(list((service.folder / f"lake/db/{name}").glob("*.json"))) for name in service.lines}
        assert finished == {"a": 0, "b": 3, "c": 3}
    service.later()
    service.lines["b"].append(4)
    worker.work_once()
    assert len(list((service.folder / "lake/db/b").glob("*.json"))) == 3, "there is room again"
    worker.stop()
    assert worker.run()
    ids = {name: service.ids(worker, name) for name in service.lines}
    assert ids == {"a": [0, 1, 2, 3], "b": [1, 2, 3, 4], "c": [1, 2, 3]}


def test_an_engine_whose_tasks_end_refuses_open_files(make: Callable[..., Service]) -> None:
    service = make("t", **OPEN)
    worker = service.worker()
    worker.open_files = None
    service.lines["t"].append(1)
    worker.work_once()
    assert "can't stay open across epochs here" in str(service.table("t").error)
    assert service.table("t").state is State.STOPPED
