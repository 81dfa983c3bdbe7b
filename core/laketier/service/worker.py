"""A worker: takes due tables, runs their rounds, many small ones in one job, and says how they ended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from laketier.service.catalogue import Catalogue
from laketier.service.schedule import State, is_retryable
from laketier.service.state import Failure, Lease, Outcome, StateError, StateStore, Worker
from laketier.sources import LogAnswer, LogRound, LogTask
from laketier.sources.log_engine import LogEngine
from laketier.sources.tiered import TieredTable
from laketier.spi import LaketierError, StorageError

log = logging.getLogger(__name__)

_HEARTBEATS_PER_LEASE = 4
_BIG_JOBS = 2
_SETTLED = {State.STOPPED, State.PAUSED, State.DROPPED, State.RECREATED}
BIG_OFFSETS = 500_000
"""A round of more offsets than this has a job of its own, so that small tables need not wait for it."""


@dataclass(frozen=True)
class WorkerSettings:
    """``tables``: leased at a time, at most. ``lease_seconds``: after this long without a heartbeat the tables are
    given to others. ``idle_seconds``: how long to wait when nothing is due. ``until_idle``: end once every table has
    been tiered since the start, or waits for a person."""

    tables: int = 64
    lease_seconds: float = 120.0
    idle_seconds: float = 0.5
    threads: int = 8
    until_idle: bool = False


@dataclass
class _Round:
    lease: Lease
    table: TieredTable
    planned_at: int
    round: LogRound | None = None
    tasks: Sequence[LogTask] = ()

    @property
    def weight(self) -> int:
        return sum(task.weight for task in self.tasks)


@dataclass
class TieringWorker:
    """Runs in the process that drives the engine. `run` returns when it was told to stop, after the rounds under way:
    a graceful drain. Killed at any point, its rounds are run again by whoever takes its leases over."""

    store: StateStore
    catalogue: Catalogue
    engine: LogEngine
    settings: WorkerSettings = field(default_factory=WorkerSettings)
    worker: Worker = field(default_factory=Worker.here)
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._held: dict[int, Lease] = {}
        self._lost: set[int] = set()
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Take no more tables. Safe in a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Work until `stop`. What the state database refuses is logged and tried again: the rounds that run meanwhile
        are safe, as the lake tables decide. Raises nothing that a table did."""
        drained = threading.Event()
        beat = threading.Thread(target=self._beat, args=(drained,), name="laketier-heartbeat", daemon=True)
        beat.start()
        pools = (
            ThreadPoolExecutor(self.settings.threads, thread_name_prefix="laketier-table"),
            ThreadPoolExecutor(_BIG_JOBS, thread_name_prefix="laketier-big"),
        )
        try:
            with pools[0], pools[1]:
                self._work(*pools)
        finally:
            drained.set()
            beat.join()

    def _work(self, tables: ThreadPoolExecutor, big: ThreadPoolExecutor) -> None:
        started = self.clock()
        while not self._stopping.is_set():
            try:
                self.catalogue.discover_when_due()
                busy = self.work_once(tables, big)
            except StateError as error:
                log.warning("the state database did not answer: %s", error)
                busy = False
            if busy:
                continue
            if self.settings.until_idle and self._all_tiered(started):
                return
            self._stopping.wait(self.settings.idle_seconds)

    def _all_tiered(self, since: int) -> bool:
        with self._lock:
            if self._held:
                return False
        return all(
            table.state in _SETTLED or (table.state is State.SCHEDULED and (table.last_tiered_at or 0) >= since)
            for table in (status.table for status in self.store.snapshot())
        )

    def work_once(self, tables: ThreadPoolExecutor, big: ThreadPoolExecutor) -> bool:
        """Lease what is due and run one round of each; False when nothing was."""
        with self._lock:
            room = self.settings.tables - len(self._held)
        if room <= 0:
            return False
        leases = self.store.acquire(self.worker, room, self.settings.lease_seconds)
        if not leases:
            return False
        with self._lock:
            self._held |= {lease.table.id: lease for lease in leases}
        planned = [each for each in tables.map(self._planned, leases) if each is not None]
        small: list[_Round] = []
        for each in planned:
            if each.weight > BIG_OFFSETS:
                big.submit(self._run_alone, each)
            else:
                small.append(each)
        if small:
            self._run_together(small, tables)
        return True

    def _run_alone(self, each: _Round) -> None:
        self._run_together([each], None)

    def _run_together(self, rounds: Sequence[_Round], tables: ThreadPoolExecutor | None) -> None:
        """One job for all, then each table's commit."""
        by_pipeline: dict[str, list[LogAnswer]] = {each.table.pipeline: [] for each in rounds}
        tasks = [task for each in rounds for task in each.tasks]
        failure: LaketierError | None = None
        try:
            for answer in self.engine.run(tasks):
                by_pipeline[answer.table].append(answer)
        except LaketierError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - whatever an engine raises: the rounds are run again
            failure = StorageError("the engine failed", why=f"{type(error).__name__}: {error}")

        def ended(each: _Round) -> tuple[Lease, Outcome | Failure]:
            return each.lease, self._ended(each, by_pipeline[each.table.pipeline], failure)

        results = list(map(ended, rounds) if tables is None else tables.map(ended, rounds))
        self._finish(results)

    def _planned(self, lease: Lease) -> _Round | None:
        """None when the table was dealt with already: nothing new, or a failure."""
        table = None
        try:
            table = self.catalogue.table(lease.table.name)
            each = _Round(lease, table, self.clock())
            each.round = LogRound(self.catalogue.log(table), table.config, table.round_settings(fence=lease.fence))
            each.tasks = each.round.plan()
        except Exception as error:  # noqa: BLE001 - one table's trouble must not be another's
            self._finish([(lease, _failure(error, lease.table.name))])
            return None
        return each

    def _ended(self, each: _Round, answers: Sequence[LogAnswer], failure: LaketierError | None) -> Outcome | Failure:
        assert each.round is not None
        try:
            if failure is not None:
                each.round.abort(answers)
                raise failure
            if self._is_lost(each.lease):
                each.round.abort(answers)
                raise StorageError("the lease was lost", where=each.table.key, why="another worker has the table")
            done = each.round.finish(answers)
        except Exception as error:  # noqa: BLE001 - one table's trouble must not be another's
            return _failure(error, each.table.key)
        if done.ending is not None:
            log.info(
                "[table=%s epoch=%s fence=%s] %s: %d rows, %d files, %d bytes, %d bad records",
                each.table.key, done.epoch, each.lease.fence, done.ending.value, done.rows, done.files, done.bytes,
                done.bad,
            )  # fmt: skip
        return Outcome(
            force_completed=done.left > 0,
            epoch=done.epoch,
            rows=done.rows,
            bytes=done.bytes,
            files=done.files,
            snapshot_id=None if done.snapshot_id is None else str(done.snapshot_id),
            offsets=done.end.to_text(),
            range_end=done.end.to_text(),
            lag_rows=done.left,
            read_until_at=each.planned_at,
        )

    def _finish(self, results: Sequence[tuple[Lease, Outcome | Failure]]) -> None:
        """Say how rounds ended. If the database does not answer, the leases run out, and the next round of each finds
        in the lake how far it got."""
        try:
            for lost in self.store.finish_all(results):
                log.warning("[table=%s fence=%s] the lease was lost", lost.table.name, lost.fence)
        except StateError as error:
            log.warning("the end of %d rounds could not be stored: %s", len(results), error)
        finally:
            with self._lock:
                for lease, _ in results:
                    self._held.pop(lease.table.id, None)
                    self._lost.discard(lease.table.id)

    def _is_lost(self, lease: Lease) -> bool:
        with self._lock:
            return lease.table.id in self._lost

    def _beat(self, drained: threading.Event) -> None:
        """Renew the leases that are held, until the last round has ended."""
        while True:
            with self._lock:
                held = list(self._held.values())
            try:
                kept = {each.table.id for each in self.store.heartbeat(self.worker, held, self.settings.lease_seconds)}
            except StateError as error:
                log.warning("a heartbeat was not heard: %s", error)
            else:
                with self._lock:
                    self._lost |= {lease.table.id for lease in held if lease.table.id not in kept} & self._held.keys()
            if drained.wait(self.settings.lease_seconds / _HEARTBEATS_PER_LEASE):
                return


def _failure(error: Exception, table: str) -> Failure:
    if not isinstance(error, LaketierError):
        log.error("[table=%s] the round failed in a way that nobody foresaw", table, exc_info=error)
    else:
        log.warning("[table=%s] the round failed: %s", table, error)
    return Failure(error, is_retryable(error))
