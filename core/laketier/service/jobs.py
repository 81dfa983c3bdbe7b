"""Runs planned rounds: many small ones in one job, and each table's commit as soon as its tasks have answered."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from queue import SimpleQueue

from laketier.kit.library_errors import as_told
from laketier.rounds.log_engine import EngineLost, LogEngine
from laketier.rounds.threads import Permits, RoundPlaces, Threads
from laketier.service.leases import WorkerLeases
from laketier.service.rounds import LeasedRound, release_all
from laketier.service.state import Failure, Lease, Success
from laketier.spi import LaketierError, StorageError

log = logging.getLogger(__name__)

BIG_WEIGHT = 500_000
"""A round of more than this (`laketier.rounds.splits.weight_of`) has a job of its own, so that small tables need not
wait for it."""
_BIG_JOBS = 2
_BIG_PATIENCE_SECONDS = 600.0
"""A big round that takes longer, as it may hang, keeps no other big one waiting."""

_Results = SimpleQueue[tuple[Lease, Success | Failure]]


@dataclass
class RoundJobs:
    """The jobs of one worker. ``places``: of commits. ``stopping``: begin no more. ``told_to_stop``: by a
    person or a host. ``lose_engine``: called once the engine is gone."""

    leases: WorkerLeases
    threads: Threads
    places: RoundPlaces
    stopping: threading.Event
    told_to_stop: threading.Event
    lose_engine: Callable[[EngineLost], None]
    _big: Permits = field(default_factory=lambda: Permits(_BIG_JOBS, _BIG_PATIENCE_SECONDS))

    def run(self, engine: LogEngine, rounds: Sequence[LeasedRound], patience_seconds: float) -> None:
        """Returns once the small ones have ended, or patience is at its end."""
        small = [each for each in rounds if each.weight <= BIG_WEIGHT]
        for each in rounds:
            if each.weight > BIG_WEIGHT:
                self.threads.start("big", self._run_big, engine, each)
        if small:
            self.threads.start("job", self._run, engine, small).join(patience_seconds)

    def _run_big(self, engine: LogEngine, each: LeasedRound) -> None:
        with self._big.one():
            self._run(engine, [each])

    def _run(self, engine: LogEngine, rounds: Sequence[LeasedRound]) -> None:
        """One job for all, then each table's commit as soon as its tasks have answered."""
        if self.stopping.is_set():
            release_all(rounds)
            return
        results: _Results = SimpleQueue()
        self.threads.start("engine", self._run_tasks, engine, rounds, results)
        left = len(rounds)
        while left:
            ended = [results.get()]
            while not results.empty():
                ended.append(results.get())
            self.leases.finish(ended)
            left -= len(ended)

    def _run_tasks(self, engine: LogEngine, rounds: Sequence[LeasedRound], results: _Results) -> None:
        waiting = {each.name: each for each in rounds}

        def commit(each: LeasedRound, failure: LaketierError | None = None) -> None:
            del waiting[each.name]
            self.threads.start("commit", self._commit, each, failure, results)

        for each in rounds:
            if not each.tasks:
                commit(each)
        failure = None
        try:
            for answer in engine.run([task.begun() for each in rounds for task in each.tasks]):
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
                self.lose_engine(failure)
        for each in list(waiting.values()):
            commit(each, failure or StorageError("the engine did not answer for all tasks", where=each.key))

    def _commit(self, each: LeasedRound, failure: LaketierError | None, results: _Results) -> None:
        with self.places.one(each.key):
            lease, ended = each.end(failure)
        if isinstance(ended, Failure) and self.told_to_stop.is_set():
            # No table's doing: who ends a process often ends those below it at once.
            ended = replace(ended, death=None)
        results.put((lease, ended))
