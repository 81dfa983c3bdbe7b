"""A worker: takes due tables, runs their rounds, many small ones in one job, and says how they ended.

No table waits for another that hangs: each is planned and committed in a thread of its own, and what is late goes on
by itself while the next tables are taken.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue

from laketier.kit import failpoint
from laketier.kit.library_errors import as_told, ends_the_process
from laketier.rounds.log_engine import EngineLost, LogEngine
from laketier.service.caught_up import CaughtUpTables
from laketier.service.failpoints import LEASED, PLANNED
from laketier.service.index_keeper import IndexKeeper
from laketier.service.leases import WorkerLeases
from laketier.service.open_files import OpenFileKeeper
from laketier.service.outage import Outage
from laketier.service.rounds import LeasedRound
from laketier.service.state import Failure, Lease, StateError, StateStore, Success, Worker
from laketier.service.tables import ServiceTables
from laketier.service.threads import Permit, Threads
from laketier.service.until_idle import UntilIdle
from laketier.spi import LaketierError, StorageError

log = logging.getLogger(__name__)

_BIG_JOBS = 2
_CLOSING_SECONDS = 5.0
_PRUNE_SECONDS = 3600.0
_PRUNE_AT_LEAST_SECONDS = 2.0
KEPT_ROUNDS = 500
"""So many ended rounds of each table are kept: hundreds of tables with a round every few seconds would fill the disk of
the state database otherwise."""
KEPT_WORKERS = 500
"""So many workers, of those that are long silent, are kept: each start has a name of its own."""
BIG_WEIGHT = 500_000
"""A round of more than this (`laketier.rounds.splits.weight_of`) has a job of its own, so that small tables need not
wait for it."""


@dataclass(frozen=True)
class WorkerSettings:
    """``tables``: leased at a time, at most. ``lease_seconds``: after this long without a heartbeat the tables are
    given to others. ``idle_seconds``: how long to wait when nothing is due. ``threads``: tables planned or committed
    at a time. ``patience_seconds``: how long the tables of a lot wait for those of it that are slow to plan, and the
    next lot for the job of this one. ``drain_seconds``: how long `TieringWorker.run` waits for the rounds under way
    when it was told to stop. ``until_idle``: end once every table has been tiered since the start, waits for a
    person, or failed a few times; `TieringWorker.left_out` has those that did not get there, with why, and
    `TieringWorker.interrupted` says that it was told to stop before. `TieringWorker.engine_lost`: why it stopped by
    itself, if it did."""

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
        self._permits = threading.Semaphore(self.settings.threads)
        self._big = threading.Semaphore(_BIG_JOBS)
        self._planned: SimpleQueue[LeasedRound] = SimpleQueue()
        self._threads = Threads()
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
            self._release(self._take_planned())
            if running is None:
                self._leases.tell_last(_CLOSING_SECONDS, self._hurry)
                return True
            if time.monotonic() > deadline or self._hurry.is_set():
                self.cut_off = self._leases.abandon()
                log.error("%s still ran: its rounds under way are cut off", running.name)
                return False
            running.join(min(0.2, self.settings.drain_seconds))

    def _release(self, rounds: Sequence[LeasedRound]) -> None:
        for each in rounds:
            try:
                each.release()
            except BaseException as error:
                if ends_the_process(error):
                    raise
                log.exception("[table=%s] a round that had not begun could not be closed", each.key)

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
        room = self.settings.tables - len(self._leases)
        leases = self._leases.take(room) if room > 0 else ()
        if leases:
            failpoint(LEASED)
            self._plan(leases)
        rounds = self._take_planned()
        small = [each for each in rounds if each.weight <= BIG_WEIGHT]
        for each in rounds:
            if each.weight > BIG_WEIGHT:
                self._threads.start("big", self._run_big, each)
        if small:
            self._threads.start("job", self._run, small).join(self.settings.patience_seconds)
        return bool(leases or rounds)

    def _plan(self, leases: Sequence[Lease]) -> None:
        """Returns when all are planned, or patience is at its end: the late ones join a later job."""
        begun = []
        for lease in leases:
            permit = Permit(self._permits)
            begun.append((permit, self._threads.start("plan", self._plan_one, lease, permit)))
        deadline = time.monotonic() + self.settings.patience_seconds
        for permit, thread in begun:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                permit.give_back()

    def _take_planned(self) -> list[LeasedRound]:
        rounds = []
        while True:
            try:
                rounds.append(self._planned.get_nowait())
            except Empty:
                return rounds

    def _plan_one(self, lease: Lease, permit: Permit) -> None:
        each = LeasedRound(lease, self._leases, self.tables, self._caught_up, self.open_files)
        try:
            with permit:
                if self._stopping.is_set():
                    self._release([each])
                    return
                each.plan(self._now())
                failpoint(PLANNED)
        except BaseException as error:  # noqa: BLE001 - one table's trouble must not be another's
            self._leases.finish([each.failed(error)])
        else:
            self._planned.put(each)

    def _run_big(self, each: LeasedRound) -> None:
        with self._big:
            self._run([each])

    def _run(self, rounds: Sequence[LeasedRound]) -> None:
        """One job for all, then each table's commit as soon as its tasks have answered."""
        if self._stopping.is_set():
            self._release(rounds)
            return
        results: SimpleQueue[tuple[Lease, Success | Failure]] = SimpleQueue()
        self._threads.start("engine", self._run_tasks, rounds, results)
        left = len(rounds)
        while left:
            ended = [results.get()]
            while not results.empty():
                ended.append(results.get())
            self._leases.finish(ended)
            left -= len(ended)

    def _run_tasks(self, rounds: Sequence[LeasedRound], results: SimpleQueue[tuple[Lease, Success | Failure]]) -> None:
        waiting = {each.name: each for each in rounds}

        def commit(each: LeasedRound, failure: LaketierError | None = None) -> None:
            del waiting[each.name]
            self._threads.start("commit", self._commit, each, failure, results)

        for each in rounds:
            if not each.tasks:
                commit(each)
        failure = None
        try:
            for answer in self.engine.run([task.begun() for each in rounds for task in each.tasks]):
                if answer.table not in waiting:  # its round has all answers: it must not fail those of other tables
                    log.warning("the engine gave an answer that no round waits for: %s", answer.table)
                    continue
                each = waiting[answer.table]
                each.answers.append(answer)
                if len(each.answers) == len(each.tasks):
                    commit(each)
        except BaseException as error:  # noqa: BLE001 - whatever an engine raises: the rounds are run again
            failure = as_told(error, "the engine failed")
            if isinstance(failure, EngineLost):
                self._lose_engine(failure)
        for each in list(waiting.values()):
            commit(each, failure or StorageError("the engine did not answer for all tasks", where=each.key))

    def _lose_engine(self, error: EngineLost) -> None:
        """Take no more tables: each would fail here, and others can have them. Of a worker that was told to stop this
        is no news."""
        if not self._told_to_stop.is_set():
            self.engine_lost = self.engine_lost or error
            self._stopping.set()

    def _commit(
        self, each: LeasedRound, failure: LaketierError | None, results: SimpleQueue[tuple[Lease, Success | Failure]]
    ) -> None:
        with Permit(self._permits):
            lease, ended = each.end(failure)
        if isinstance(ended, Failure) and self._told_to_stop.is_set():
            # No table's doing: who ends a process often ends those below it at once.
            ended = replace(ended, death=None)
        results.put((lease, ended))
