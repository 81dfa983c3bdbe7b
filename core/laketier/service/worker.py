"""A worker: takes due tables, runs their rounds, many small ones in one job, and says how they ended.

No table waits for another that hangs: each is planned and committed in a thread of its own, and what is late goes on
by itself while the next tables are taken. So it is with tasks, where the engine sees to it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from laketier.kit import failpoint
from laketier.kit.library_errors import as_told
from laketier.rounds.log_engine import EngineLost, LogEngine
from laketier.rounds.threads import Permits, RoundPlaces, Threads
from laketier.service.caught_up import CaughtUpTables
from laketier.service.failpoints import LEASED
from laketier.service.index_keeper import IndexKeeper
from laketier.service.jobs import RoundJobs
from laketier.service.leases import WorkerLeases
from laketier.service.open_files import OpenFileKeeper
from laketier.service.other_services import PublishedEpochs
from laketier.service.outage import Outage
from laketier.service.planning import RoundPlanner
from laketier.service.rounds import LeasedRound, release_all
from laketier.service.state import StateError, StateStore, Worker
from laketier.service.tables import ServiceTables
from laketier.service.until_idle import UntilIdle

log = logging.getLogger(__name__)

_CLOSING_SECONDS = 5.0
_PRUNE_SECONDS = 3600.0
_PRUNE_AT_LEAST_SECONDS = 2.0
KEPT_ROUNDS = 500
"""So many ended rounds of each table are kept: hundreds of tables with a round every few seconds would fill the disk of
the state database otherwise."""
KEPT_WORKERS = 500
"""So many workers, of those that are long silent, are kept: each start has a name of its own."""


@dataclass(frozen=True)
class WorkerSettings:
    """``tables``: leased at a time, at most; beside them as many whose sources or lakes are late. ``lease_seconds``:
    after this long without a heartbeat the tables are given to others. ``idle_seconds``: how long to wait when nothing
    is due. ``threads``: tables planned or committed at a time, as long as none is slow. ``patience_seconds``: how long
    the tables of a lot wait for those of it that are slow to plan, the next lot for the job of this one, and others for
    the place of a slow one. ``drain_seconds``: how long `TieringWorker.run` waits for the rounds under way when it was
    told to stop. ``until_idle``: end once every table has been tiered since the start, waits for a person, or failed a
    few times; `TieringWorker.left_out` has those that did not get there, with why, and `TieringWorker.interrupted` says
    that it was told to stop before. `TieringWorker.engine_lost`: why it stopped by itself, if it did."""

    tables: int = 64
    lease_seconds: float = 120.0
    idle_seconds: float = 0.5
    threads: int = 8
    patience_seconds: float = 5.0
    drain_seconds: float = 600.0
    until_idle: bool = False


@dataclass
class TieringWorker:
    """Runs in the process that drives the engine. `run` returns when it was told to stop, after the rounds under way:
    a graceful drain. Killed at any point, its rounds are run again by whoever takes its leases over."""

    store: StateStore
    tables: ServiceTables
    engine: LogEngine
    settings: WorkerSettings = field(default_factory=WorkerSettings)
    worker: Worker = field(default_factory=Worker.here)
    clock: Callable[[], int] | None = None
    """Ms since the epoch; the state store's by default."""
    keeper: IndexKeeper | None = None
    """Keeps the indexes of the tables, if any has some."""
    open_files: OpenFileKeeper | None = None
    """Keeps files open from round to round. None where the engine's tasks run elsewhere."""

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._told_to_stop = threading.Event()
        self._hurry = threading.Event()
        self.cut_off: list[str] = []
        self.left_out: dict[str, str] = {}
        self.interrupted = False
        self.engine_lost: EngineLost | None = None
        self._until: UntilIdle | None = None
        self._leases = WorkerLeases(self.store, self.worker, self.settings.lease_seconds)
        self._caught_up = CaughtUpTables()
        self._published = PublishedEpochs()
        self._threads = Threads()
        patience, count = self.settings.patience_seconds, self.settings.threads
        permits, of_late = Permits(count, patience), Permits(count, patience)
        # Two of them: a lake may hang in its commits alone, and a source when rounds are planned.
        self._planning, self._committing = (RoundPlaces(permits, of_late, patience) for _ in range(2))
        self._planner = RoundPlanner(self._leases, self._threads, self._planning, patience, self._stopping, self._now)
        self._jobs = RoundJobs(
            self._leases, self._threads, self._committing, self._stopping, self._told_to_stop, self._lose_engine
        )
        self._outage = Outage(log, "no table is taken, as the state database did not answer")
        self._discovery: threading.Thread | None = None
        self._prune_at = 0.0

    def _now(self) -> int:
        return self.store.now() if self.clock is None else self.clock()

    def stop(self) -> None:
        """Take no more tables. Called again: wait no more for rounds under way. Safe in a signal handler."""
        if self._stopping.is_set():
            self._hurry.set()
        self._told_to_stop.set()
        self._stopping.set()

    def run(self) -> bool:
        """Work until `stop`. False: rounds were still under way after ``drain_seconds``, and nothing can end them but
        the end of the process; their tables, given back, are ``cut_off``. They are safe, as the lake tables decide.
        What the state database refuses is logged and tried again. Raises nothing that a table did."""
        drained = threading.Event()
        self._leases.beat()
        beat = threading.Thread(target=self._leases.beat_until, args=(drained,), name="laketier-heartbeat", daemon=True)
        beat.start()
        try:
            if self.keeper is not None:
                self._threads.start("indexes", self.keeper.run_until, self._stopping)
            if self.open_files is not None:
                self._threads.start("open files", self.open_files.run_until, self._stopping, self._leases.has)
            self._work()
            self._keep_indexes()
            self._stopping.set()
            has_drained = self._drain()
            if self.open_files is not None and has_drained:
                self.open_files.end()
            self._look_back()
            return has_drained
        finally:
            if self.open_files is not None:
                self.open_files.abandon()
            drained.set()
            beat.join(_CLOSING_SECONDS)

    def _work(self) -> None:
        self.interrupted = self.settings.until_idle
        looked = time.monotonic()
        while not self._stopping.is_set():
            try:
                if self.settings.until_idle and self._until is None:
                    self._until = UntilIdle.begun(self.store, self._now())
                self._discover_when_due()
                self._prune_when_due()
                busy = self.work_once()
                self._outage.back()
            except StateError as error:
                self._outage.away(error)
                busy = False
            try:
                # Also beside tables that are always busy, as they fail or are due all the time; not each time, then.
                until = self._until
                if until is not None and (not busy or time.monotonic() - looked > self.settings.idle_seconds):
                    looked = time.monotonic()
                    if self._is_idle(until):
                        self.interrupted = False
                        return
            except StateError as error:
                self._outage.away(error)
            if busy:
                continue
            self._stopping.wait(self.settings.idle_seconds)

    def _keep_indexes(self) -> None:
        """A last look, where nobody will come again."""
        if self.keeper is not None and self.settings.until_idle and not self.interrupted:
            try:
                self.keeper.keep_all()
            except StateError as error:
                log.warning("the state database did not answer; indexes may lag behind: %s", error)

    def _drain(self) -> bool:
        """Wait for what is under way, and give back what has not begun. However orderly it ends, others are told: it
        would look alive for a lease's time."""
        self._leases.stopping()
        deadline = time.monotonic() + self.settings.drain_seconds
        while True:
            running = self._threads.one_that_runs()
            release_all(self._planner.take())
            if running is None:
                self._leases.tell_last(_CLOSING_SECONDS, self._hurry)
                return True
            if time.monotonic() > deadline or self._hurry.is_set():
                self.cut_off = self._leases.abandon()
                log.error("%s still ran: its rounds under way are cut off", running.name)
                return False
            running.join(min(0.2, self.settings.drain_seconds))

    def _is_idle(self, until: UntilIdle) -> bool:
        if len(self._leases):
            return False
        statuses = self.store.snapshot()
        self.left_out = until.left_out(statuses)
        return until.is_over(statuses)

    def _look_back(self) -> None:
        """Say which tables did not get there, where it was told to stop before it saw that all did."""
        if self.interrupted:
            try:
                until = self._until or UntilIdle(self._now())
                self.left_out = until.left_out(self.store.snapshot())
            except StateError as error:
                log.warning("the state database could not be asked which tables were tiered: %s", error)

    def _discover_when_due(self) -> None:
        if self._outage.is_on:
            return  # what the sources list could not be registered, and each look would ask them all for nothing
        if (self._discovery is None or not self._discovery.is_alive()) and self.tables.is_due:
            self._discovery = self._threads.start("discovery", self._discover)

    def _discover(self) -> None:
        try:
            self.tables.discover()
        except BaseException as error:  # noqa: BLE001 - told, and tried again when it is due
            told = as_told(error, "the tables could not be listed")
            log.warning("known tables continue: %s", told)

    def _prune_when_due(self) -> None:
        if time.monotonic() >= self._prune_at:
            self._prune_at = time.monotonic() + _PRUNE_SECONDS
            self._threads.start("history", self._prune)

    def _prune(self) -> None:
        least = time.monotonic() + _PRUNE_AT_LEAST_SECONDS

        def is_over() -> bool:
            # Who ends by itself prunes for a moment, or workers that are always short would never; the drain waits.
            if self._told_to_stop.is_set() or self.engine_lost is not None:
                return True
            return self._stopping.is_set() and time.monotonic() > least

        try:
            self.store.prune(KEPT_ROUNDS, is_over)
        except StateError as error:  # rights to delete are asked for nowhere
            log.warning("old rounds stay in the state database's table tiering_rounds, which grows: %s", error)
        try:
            self.store.prune_workers(KEPT_WORKERS)
        except StateError as error:
            log.warning("old workers stay in the state database's table tiering_workers, which grows: %s", error)

    def work_once(self) -> bool:
        """Lease what is due and run one round of each; False when there was nothing to do. Raises `StateError`."""
        self._leases.tell()
        late = self._planning.late_count + self.engine.late_count + self._committing.late_count
        room = self.settings.tables + min(late, self.settings.tables) - len(self._leases)
        leases = self._leases.take(room) if room > 0 else ()
        if leases:
            failpoint(LEASED)
            self._planner.plan(
                [
                    LeasedRound(lease, self._leases, self.tables, self._caught_up, self._published, self.open_files)
                    for lease in leases
                ]
            )
        rounds = self._planner.take()
        self._jobs.run(self.engine, rounds, self.settings.patience_seconds)
        return bool(leases or rounds)

    def _lose_engine(self, error: EngineLost) -> None:
        """Take no more tables: each would fail here, and others can have them. Of a worker that was told to stop this
        is no news."""
        if not self._told_to_stop.is_set():
            self.engine_lost = self.engine_lost or error
            self._stopping.set()
