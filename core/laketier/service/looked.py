"""Recent answers of the state database: one query serves all callers at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from laketier.service.state import StateError, StateStore, TableStatus, WorkerSeen

SECONDS = 2.0


@dataclass(frozen=True)
class Looked:
    """Tables by name, and workers, at one moment."""

    statuses: Sequence[TableStatus]
    workers: Sequence[WorkerSeen]
    by_id: dict[int, TableStatus]
    at: int
    """When, in ms since the epoch, by the store."""


@dataclass
class SharedLook:
    """Safe in threads: who comes while another asks waits for that answer, be it an error. ``seconds``: how old it may
    be. ``clock``: seconds that only grow. ``writer``: the store of the worker in this process."""

    store: StateStore
    seconds: float = SECONDS
    clock: Callable[[], float] = time.monotonic
    writer: StateStore | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _last: Looked | StateError | None = None
    _at: float = 0.0

    @property
    def service(self) -> str:
        """The service's name."""
        return self.store.service

    @property
    def refuses(self) -> StateError | None:
        """Why the state database took no write of this process's worker last."""
        return None if self.writer is None else self.writer.refuses

    def now(self) -> Looked:
        """Raises `StateError`."""
        asked_at = self.clock()
        with self._lock:
            # An answer that came while this one waited is new enough, whatever ``seconds``.
            if self._last is None or asked_at - self._at >= self.seconds:
                try:
                    statuses, workers = self.store.snapshot(), self.store.workers()
                    self._last = Looked(statuses, workers, {each.table.id: each for each in statuses}, self.store.now())
                except StateError as error:
                    self._last = error
                self._at = self.clock()
            if isinstance(self._last, StateError):
                raise self._last
            return self._last

    def alive(self) -> None:
        """Raise `StateError` when the state database does not answer, or takes no writes of the worker. Asks for no
        tables."""
        if self.refuses is not None:
            raise self.refuses
        with self._lock:
            last = self._last if self.clock() - self._at < self.seconds else None
        if isinstance(last, StateError):
            raise last
        if last is None:
            self.store.workers()
