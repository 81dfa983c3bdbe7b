"""One loader per table: who comes meanwhile waits for it, and for nobody else's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

PATIENCE_SECONDS = 30.0
"""A load that takes longer may never end, and another one may."""


@dataclass
class _Turn:
    lock: Any = field(default_factory=threading.RLock)
    users: int = 0


class Turns:
    """A lock for each key that somebody has or waits for."""

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._turns: dict[str, _Turn] = {}

    @contextmanager
    def of(self, key: str) -> Iterator[bool]:
        """Within the block no other thread is in a block of the same key. A thread may be in several: what a plugin
        does while it loads a table is its own. Yields False to who has waited long enough, and has no turn then."""
        with self._lock:
            turn = self._turns.setdefault(key, _Turn())
            turn.users += 1
        try:
            mine = turn.lock.acquire(timeout=self._patience)
            try:
                yield mine
            finally:
                if mine:
                    turn.lock.release()
        finally:
            with self._lock:
                turn.users -= 1
                if not turn.users:
                    del self._turns[key]

    def __len__(self) -> int:
        """How many keys somebody has or waits for."""
        return len(self._turns)
