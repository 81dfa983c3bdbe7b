"""Locks that a process takes on files, and whether it still has them."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from laketier_conformance.interposed.effects import Effect

_TABLE = "/proc/locks"


@dataclass
class _Lock:
    process: int
    descriptor: str
    file: tuple[int, int]
    is_there: bool = False


class OwnLocks:
    """The locks of POSIX of one request. A process that closes a file by any descriptor loses those that it has on it
    by another one, and is not told. It does not know that where the descriptor by which it took the lock is still open.
    """

    def __init__(self) -> None:
        self._locks: dict[tuple[int, tuple[int, int]], _Lock] = {}

    def take(self, effect: Effect) -> None:
        """A lock is about to be taken, or given back."""
        if "F_OFD" in effect.call or not effect.call.startswith("fcntl"):
            return
        with suppress(OSError):
            thread = effect.through.split("/")[2]
            lock = _Lock(_process_of(thread), effect.through, _file_at(effect.through))
            if effect.unlocks:
                self._locks.pop((lock.process, lock.file), None)
            else:
                self._locks.setdefault((lock.process, lock.file), lock)

    def is_lost(self) -> bool:
        """Whether one of them was there, is no more, and its process neither gave it back nor closed its descriptor."""
        if not self._locks:
            return False
        there = _those_of_posix()
        for key, lock in list(self._locks.items()):
            if key in there:
                lock.is_there = True
            elif lock.is_there:
                del self._locks[key]
                with suppress(OSError):
                    if _file_at(lock.descriptor) == lock.file:
                        return True
        return False


def _process_of(thread: str) -> int:
    with open(f"/proc/{thread}/status", encoding="ascii", errors="replace") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("Tgid:"))


def _file_at(descriptor: str) -> tuple[int, int]:
    found = os.stat(descriptor)
    return found.st_dev, found.st_ino


def _those_of_posix() -> set[tuple[int, tuple[int, int]]]:
    """Who has a lock on which file."""
    found = set()
    with open(_TABLE, encoding="ascii", errors="replace") as lines:
        for line in lines:
            words = line.split()
            if "POSIX" in words and "->" not in words:
                major, minor, inode = words[words.index("POSIX") + 4].split(":")
                device = os.makedev(int(major, 16), int(minor, 16))
                found.add((int(words[words.index("POSIX") + 3]), (device, int(inode))))
    return found
