"""Threads that a process which ends does not wait for, as what they call may hang."""

from __future__ import annotations

import threading
from collections.abc import Callable
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


class Permit:
    """One of a few. Whoever is late loses it, so that others need not wait."""

    def __init__(self, permits: threading.Semaphore) -> None:
        self._permits = permits
        self._lock = threading.Lock()
        self._acquired = False

    def __enter__(self) -> None:
        self._permits.acquire()
        self._acquired = True

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        """Let another have it. Does nothing before it was got, or the second time."""
        with self._lock:
            if self._acquired:
                self._acquired = False
                self._permits.release()
