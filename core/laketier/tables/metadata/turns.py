"""One loader per table: who comes meanwhile waits for it, and for nobody else's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Turn:
    lock: Any = field(default_factory=threading.RLock)
    users: int = 0


class Turns:
    """A lock for each key that somebody has or waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: dict[str, _Turn] = {}

    @contextmanager
    def of(self, key: str) -> Iterator[None]:
        """Within the block no other thread is in a block of the same key. A thread may be in several: what a plugin
        does while it loads a table is its own."""
        with self._lock:
            turn = self._turns.setdefault(key, _Turn())
            turn.users += 1
        try:
            with turn.lock:
                yield
        finally:
            with self._lock:
                turn.users -= 1
                if not turn.users:
                    del self._turns[key]

    def __len__(self) -> int:
        """How many keys somebody has or waits for."""
        return len(self._turns)
