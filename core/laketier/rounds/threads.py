"""Threads that a process which ends does not wait for, as what they call may hang."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Threads:
    """Those of one worker or engine. Safe in threads."""

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
    ``patience_seconds``, as what that one calls may hang. Who waits longest is next: whoever comes back at once for
    another place would have each otherwise, before the others are awake. Safe in threads."""

    def __init__(self, count: int, patience_seconds: float) -> None:
        self._count = count
        self._patience_seconds = patience_seconds
        self._changed = threading.Condition()
        self._places: dict[object, float] = {}
        self._waiting: deque[object] = deque()

    @contextmanager
    def one(self) -> Iterator[Callable[[], None]]:
        """Wait for a place, and have it meanwhile. Who calls what this yields is not slow so far."""
        me = object()

        def works() -> None:
            with self._changed:
                if self._places.pop(me, None) is not None:
                    self._places[me] = time.monotonic()

        with self._changed:
            self._waiting.append(me)
            try:
                while (left := self._seconds_until(me)) > 0:
                    self._changed.wait(left)
                self._places[me] = time.monotonic()
            finally:
                self._waiting.remove(me)
                self._changed.notify_all()
        try:
            yield works
        finally:
            with self._changed:
                self._places.pop(me, None)
                self._changed.notify_all()

    def _seconds_until(self, me: object) -> float:
        """How long ``me`` waits at most before it looks again; 0 where it may have a place, that of a slow one too."""
        if self._waiting[0] is not me:
            return self._patience_seconds
        if len(self._places) < self._count:
            return 0.0
        oldest, since = next(iter(self._places.items()))
        left = since + self._patience_seconds - time.monotonic()
        if left <= 0:
            del self._places[oldest]
        return max(left, 0.0)


class RoundPlaces:
    """Places for what asks the source or the lake of a table, which may not answer. A table that was late is known to
    be so until it is in time again: it gets one of ``of_late``, and keeps no other waiting. Safe in threads."""

    def __init__(self, permits: Permits, of_late: Permits, patience_seconds: float) -> None:
        self._permits = permits
        self._of_late = of_late
        self._patience_seconds = patience_seconds
        self._known_late: set[str] = set()
        self._under_way: dict[object, tuple[str, float]] = {}
        self._waiting: set[object] = set()
        self._worked_at = 0.0
        self._lock = threading.Lock()

    @property
    def late_count(self) -> int:
        """How many tables wait, or have a place, for longer than patience lasts, or are known to be late. Who waits for
        others that work is not late: it only has its turn later."""
        then = time.monotonic() - self._patience_seconds
        with self._lock:
            late = set()
            for me, (table, since) in self._under_way.items():
                if table in self._known_late or (max(since, self._worked_at) if me in self._waiting else since) < then:
                    late.add(table)
            return len(late)

    def is_known_late(self, table: str) -> bool:
        """Whether it was late the last time."""
        with self._lock:
            return table in self._known_late

    @contextmanager
    def one(self, table: str) -> Iterator[Callable[..., None]]:
        """Wait for a place, and have it meanwhile. Who calls what this yields is not late so far; or was it, where the
        call says that it was silent for so many seconds: who hears only at the end how it went has to."""
        me = object()
        with self._lock:
            self._under_way[me] = (table, time.monotonic())
            self._waiting.add(me)
            permits = self._of_late if table in self._known_late else self._permits
        try:
            with permits.one() as keep:
                since = time.monotonic()
                was_late = False
                with self._lock:
                    self._waiting.discard(me)
                    self._under_way[me] = (table, since)

                def works(silent_seconds: float | None = None) -> None:
                    nonlocal since, was_late
                    keep()
                    silent = time.monotonic() - since if silent_seconds is None else silent_seconds
                    was_late = was_late or self._is_late(silent)
                    since = time.monotonic()
                    with self._lock:
                        self._under_way[me] = (table, since)
                        self._worked_at = since

                try:
                    yield works
                finally:
                    self._note(table, was_late or self._is_late(time.monotonic() - since))
        finally:
            with self._lock:
                self._waiting.discard(me)
                del self._under_way[me]

    def _is_late(self, silent_seconds: float) -> bool:
        return silent_seconds > self._patience_seconds

    def _note(self, table: str, was_late: bool) -> None:
        with self._lock:
            if was_late:
                self._known_late.add(table)
            else:
                self._known_late.discard(table)
