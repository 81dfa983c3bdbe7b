"""A worker in this process: what hangs, what is lost and what is made anew, on real logs and lakes."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from lines_log.plugin import LinesLog, LinesSource

from laketier.kit.failpoints import observed
from laketier.registry import open_lake
from laketier.rounds import LogAnswer, LogRound, LogTask, run_log_task
from laketier.rounds.log_engine import EngineLost, LocalEngine, LogEngine
from laketier.service import worker as working
from laketier.service.failpoints import PLANNED
from laketier.service.listing import list_all
from laketier.service.schedule import State
from laketier.service.state import Success, Worker
from laketier.spi import BucketBounds, LogRange, LogSplit, ScanRequest, StorageError, TableLog
from laketier.tables.scan import scan
from laketier_verification.lines import CutLog, LinesTable
from tiering_service import Service, until, work_until


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
        until(lambda: State.FAILED in {service.table(name).state for name in service.names})
    failed = next(service.table(name) for name in service.names if service.table(name).state is State.FAILED)
    assert "index out of bounds" in (failed.error or "")
    worker.stop()
    assert worker.run(), "nothing is under way any more"
    monkeypatch.undo()
    worker = service.worker()
    service.later()
    work_until(worker, lambda: {service.table(name).state for name in service.names} == {State.SCHEDULED})
    assert [service.ids(worker, name) for name in service.names] == [[1], [1]]


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

    class Gone(LogEngine):
        def run(self, tasks: Sequence[LogTask]) -> Iterator[LogAnswer]:
            del tasks
            raise EngineLost("the engine is gone")

    monkeypatch.setattr(worker.store, "prune", prune)
    worker.engine = Gone() if lost else worker.engine
    try:
        assert worker.run(), "nothing is under way any more"
    finally:
        ended.set()


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
