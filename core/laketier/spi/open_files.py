"""What a writer leaves open from one epoch to the next, in a process that lives over epochs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod


class OpenFiles(ABC):
    """What a format's writer leaves open when an epoch ends. The format makes it; the engine only holds it."""

    @property
    def is_due(self) -> bool:
        """Whether something of it should be finished now though no rows come, as it got old. The engine then runs a
        round without rows."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Give it up: release descriptors and memory, and write nothing. What was committed stays, and whoever commits
        next finishes it. Never raises. May be called twice."""


class OpenFilesSlot:
    """A place for the `OpenFiles` of one table and one pipeline. An engine that lives over epochs makes one, hands it
    to a writer of each epoch (`WriterInitContext.open_files`), and calls `close` when it loses its lease or ends. Only
    one writer of an epoch gets it. Safe in threads. Never pickled.

    Attributes:
        ending: Whether no epoch follows. A writer then finishes all that is open, and leaves nothing.
    """

    def __init__(self) -> None:
        self.ending = False
        self._files: OpenFiles | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def take(self) -> OpenFiles | None:
        """Take what the last epoch left. A writer calls it when it is made.

        Returns:
            It, for this caller alone. None where the last epoch left nothing, or another writer has it.
        """
        with self._lock:
            files, self._files = self._files, None
        return files

    def leave(self, files: OpenFiles) -> None:
        """Leave something for the next epoch. A writer calls it at the end of `LakeWriter.complete`. Where the slot is
        closed or taken, ``files`` are closed.

        Args:
            files: What stays open.
        """
        with self._lock:
            has_room = not self._is_closed and self._files is None
            if has_room:
                self._files = files
        if not has_room:
            files.close()

    @property
    def is_due(self) -> bool:
        """Whether what is in it is due (`OpenFiles.is_due`). False while a writer has it."""
        with self._lock:
            return self._files is not None and self._files.is_due

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in it."""
        with self._lock:
            return self._files is None

    def close(self) -> None:
        """Give up what is in it, and take nothing any more. Idempotent."""
        with self._lock:
            files, self._files, self._is_closed = self._files, None, True
        if files is not None:
            files.close()
