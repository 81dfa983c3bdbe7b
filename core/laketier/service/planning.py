"""Plans the rounds of leased tables: what is late goes on by itself, and tables that are known to be late keep no other
waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from laketier.kit import failpoint
from laketier.rounds.threads import RoundPlaces, Threads
from laketier.service.failpoints import PLANNED
from laketier.service.leases import WorkerLeases
from laketier.service.rounds import LeasedRound, release_all


@dataclass
class RoundPlanner:
    """The planning of one worker. A source that does not answer costs its timeout at each look, and may have many
    tables: one that was late is planned beside the others from then on, until it is in time again. ``places``: of
    tables that are planned. ``stopping``: begin no more."""

    leases: WorkerLeases
    threads: Threads
    places: RoundPlaces
    patience_seconds: float
    stopping: threading.Event
    now: Callable[[], int]
    _planned: SimpleQueue[LeasedRound] = field(default_factory=SimpleQueue)

    def plan(self, rounds: Sequence[LeasedRound]) -> None:
        """Returns when all are planned but those that are known to be late, or patience is at its end: the late ones
        join a later job."""
        awaited = []
        for each in rounds:
            is_late = self.places.is_known_late(each.key)
            thread = self.threads.start("plan", self._plan_one, each)
            if not is_late:
                awaited.append(thread)
        deadline = time.monotonic() + self.patience_seconds
        for thread in awaited:
            thread.join(max(0.0, deadline - time.monotonic()))

    def take(self) -> list[LeasedRound]:
        """The rounds that were planned since the last call."""
        rounds = []
        while True:
            try:
                rounds.append(self._planned.get_nowait())
            except Empty:
                return rounds

    def _plan_one(self, each: LeasedRound) -> None:
        try:
            with self.places.one(each.key):
                if self.stopping.is_set():
                    release_all([each])
                    return
                each.plan(self.now())
                failpoint(PLANNED)
        except BaseException as error:  # noqa: BLE001 - one table's trouble must not be another's
            self.leases.finish([each.failed(error)])
        else:
            self._planned.put(each)
