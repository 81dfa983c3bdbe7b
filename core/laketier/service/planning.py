"""Plans the rounds of leased tables: what is late goes on by itself, and tables that are known to be late keep no other
waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from laketier.kit import failpoint
from laketier.service.failpoints import PLANNED
from laketier.service.leases import WorkerLeases
from laketier.service.rounds import LeasedRound, release_all
from laketier.service.threads import Permits, Threads


@dataclass
class RoundPlanner:
    """The planning of one worker. A source that does not answer costs its timeout at each look, and may have many
    tables: one that was late is planned beside the others from then on, until it is in time again, and those that are
    late take up no others' room. ``stopping``: begin no more. ``late``: places of the tables that are known to be late.
    """

    leases: WorkerLeases
    threads: Threads
    permits: Permits
    late: Permits
    patience_seconds: float
    stopping: threading.Event
    now: Callable[[], int]
    _planned: SimpleQueue[LeasedRound] = field(default_factory=SimpleQueue)
    _known_late: set[str] = field(default_factory=set)
    _under_way: dict[LeasedRound, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def late_count(self) -> int:
        """How many rounds are being planned for longer than patience lasts, or are of tables that are known to be
        late."""
        then = time.monotonic() - self.patience_seconds
        with self._lock:
            return sum(each.key in self._known_late or since < then for each, since in self._under_way.items())

    def plan(self, rounds: Sequence[LeasedRound]) -> None:
        """Returns when all are planned but those that are known to be late, or patience is at its end: the late ones
        join a later job."""
        awaited = []
        for each in rounds:
            with self._lock:
                self._under_way[each] = time.monotonic()
                is_late = each.key in self._known_late
            thread = self.threads.start("plan", self._plan_one, each, self.late if is_late else self.permits)
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

    def _plan_one(self, each: LeasedRound, permits: Permits) -> None:
        try:
            with permits.one():
                if self.stopping.is_set():
                    release_all([each])
                    return
                since = time.monotonic()
                try:
                    each.plan(self.now())
                finally:
                    self._note(each.key, time.monotonic() - since)
                failpoint(PLANNED)
        except BaseException as error:  # noqa: BLE001 - one table's trouble must not be another's
            self.leases.finish([each.failed(error)])
        else:
            self._planned.put(each)
        finally:
            with self._lock:
                self._under_way.pop(each, None)

    def _note(self, key: str, seconds: float) -> None:
        with self._lock:
            if seconds > self.patience_seconds:
                self._known_late.add(key)
            else:
                self._known_late.discard(key)
