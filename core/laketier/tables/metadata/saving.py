"""What is written to the disk tier, and removed from it, behind the backs of all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from laketier.tables.metadata.background import Background
from laketier.tables.metadata.disk import Disk
from laketier.tables.metadata.document import Saved
from laketier.tables.metadata.key import TableKey

FLUSH_SECONDS = 5.0
"""How long who removes files waits for those that are being written."""
_SAVE_EVERY_SECONDS = 5.0
_MOST_TABLES = 10_000


class Saving:
    """Saves descriptions in the background, each table once in a while. Safe in threads."""

    def __init__(self, disk: Disk, background: Background, clock: Callable[[], float]) -> None:
        self._disk = disk
        self._background = background
        self._clock = clock
        self._lock = threading.Lock()
        self._saved: dict[str, float] = {}

    def save(self, key: TableKey, saved: Saved, size: int) -> bool:
        """Behind. A table that changes all the time is not saved each time: nobody would find it unchanged. Returns
        False where it never will be saved, as too much waits already."""
        if self._disk.root is None:
            return True
        with self._lock:
            last = self._saved.get(key.name)
            if last is not None and self._clock() - last < _SAVE_EVERY_SECONDS:
                return True
            if len(self._saved) >= _MOST_TABLES:
                self._saved.clear()
            self._saved[key.name] = self._clock()
        return self._background.submit(_job(key.name), lambda: self._disk.save(key.name, saved), size)

    def drop_behind(self, key: TableKey) -> None:
        """Remove a table's file, and don't wait for it."""
        self._background.submit(_job(key.name), lambda: self._disk.drop(key.name))
        self._forget(key.name)

    def drop(self, names: Sequence[str]) -> list[str]:
        """Remove tables' files. Call `flush` before: what is being written would be there afterwards. Returns the names
        that had one."""
        for name in names:
            self._forget(name)
        return [name for name in names if self._disk.drop(name)]

    def clear(self) -> int:
        """Remove all files. Returns of how many tables they were."""
        self.flush(FLUSH_SECONDS)
        with self._lock:
            self._saved.clear()
        return self._disk.clear()

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until all that has to be saved is saved, at most for ``seconds``. Returns whether it is."""
        with suppress(RuntimeError):
            return self._background.flush(seconds)
        return False

    def _forget(self, name: str) -> None:
        with self._lock:
            self._saved.pop(name, None)


def _job(name: str) -> str:
    """One name for both: of a file that is to be saved and to be removed, the later order counts."""
    return f"save {name}"
