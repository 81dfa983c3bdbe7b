"""Threads that a process which ends does not wait for, as what they call may hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Threads:
    """Those of one worker. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: set[threading.Thread] = set()

    def start(self, name: str, target: Callable[..., None], *arguments: Any) -> threading.Thread:
        """Start one."""
        thread = threading.Thread(target=target, args=arguments, name=f"laketier-{name}", daemon=True)
        with self._lock:
            self._started = {each for each in self._started if each.is_alive()}
            thread.start()
            self._started.add(thread)
        return thread

    def one_that_runs(self) -> threading.Thread | None:
        """None when all have ended."""
        with self._lock:
            return next((each for each in self._started if each.is_alive()), None)


class Permits:
    """So many threads at a time, as long as none is slow: who waits gets the place of one that has had it for
    ``patience_seconds``, as what that one calls may hang. Safe in threads."""

    def __init__(self, count: int, patience_seconds: float) -> None:
        self._count = count
        self._patience_seconds = patience_seconds
        self._changed = threading.Condition()
        self._places: dict[object, float] = {}

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait for a place, and have it meanwhile."""
        me = object()
        with self._changed:
            while len(self._places) >= self._count:
                oldest, since = next(iter(self._places.items()))
                left = since + self._patience_seconds - time.monotonic()
                if left <= 0:
                    del self._places[oldest]
                else:
                    self._changed.wait(left)
            self._places[me] = time.monotonic()
        try:
            yield
        finally:
            with self._changed:
                self._places.pop(me, None)
                self._changed.notify()
