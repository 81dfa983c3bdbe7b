"""What this process did with data files, counted: for metrics. Few series, whatever the number of tables."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from enum import Enum


class FileEnd(Enum):
    """What ended a data file."""

    ROWS = "rows"
    BYTES = "bytes"
    AGE = "age"
    IDLE = "idle"
    EVENT_TIME = "event-time"
    OPEN_FILES = "open-files"
    """The task had too many open, of other partitions."""
    TASK = "task"
    """The task ended, or with files that stay open across epochs the writer."""


class FileCounts:
    """Counters of a process, from its start. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: Counter[FileEnd] = Counter()
        self._folded = 0

    def ended(self, why: FileEnd) -> None:
        """A file of a `RollingWriter` ended."""
        with self._lock:
            self._ended[why] += 1

    def folded(self, files: int) -> None:
        """A commit wrote so many small files as fewer."""
        with self._lock:
            self._folded += files

    def now(self) -> tuple[Mapping[FileEnd, int], int]:
        """The files that ended, by what ended them, and those that were folded."""
        with self._lock:
            return {why: self._ended[why] for why in FileEnd}, self._folded


FILE_COUNTS = FileCounts()
"""Those of this process."""
