"""Tables that change between any two looks: keeping them costs something, and serves nobody."""

from __future__ import annotations

import threading

_PATIENCE = 3
_LONGEST = 8
_MOST_TABLES = 10_000


class Busy:
    """Says which looks pass a cache by. After three looks in a row that found the table changed, one passes by, then
    two, four, and at last eight, until one finds it unchanged. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[str, tuple[int, int]] = {}

    def passes_by(self, key: str) -> bool:
        """Whether this look need not ask the cache."""
        if key not in self._tables:
            return False
        with self._lock:
            in_a_row, left = self._tables.get(key, (0, 0))
            if not left:
                return False
            self._tables[key] = in_a_row, left - 1
            return True

    def changed(self, key: str) -> None:
        """A look found the table changed."""
        with self._lock:
            if len(self._tables) >= _MOST_TABLES and key not in self._tables:
                self._tables.clear()
            in_a_row = self._tables.get(key, (0, 0))[0] + 1
            passing = 0 if in_a_row < _PATIENCE else min(2 ** min(in_a_row - _PATIENCE, 10), _LONGEST)
            self._tables[key] = in_a_row, passing

    def unchanged(self, key: str) -> None:
        """A look found the table as it was."""
        if key in self._tables:
            with self._lock:
                self._tables.pop(key, None)
