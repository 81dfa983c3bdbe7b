"""The tier on the disk: one file per table, which all processes of a user on a host share.

Nothing here is needed, and nothing is trusted: whatever goes wrong, a table is loaded. A file is written beside its
name and renamed, so a reader finds the old one or the new one; nothing is synced, as a checksum tells a torn one.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from laketier.spi import host_time
from laketier.tables.metadata.counts import Counts
from laketier.tables.metadata.document import LARGEST, Saved, decode, encode, holds_secrets, survives
from laketier.tables.metadata.files import Found, allocated, content, replace
from laketier.tables.metadata.folder import UnsafeFolder, open_private
from laketier.tables.metadata.key import file_name, key_parts
from laketier.tables.metadata.patience import Patience

log = logging.getLogger(__name__)

_FOLDER = "tables-1"
"""Of files of this version. A later one uses another folder."""
_NAME = re.compile(r"[0-9a-f]{64}\.json")
_TEMPORARY = re.compile(r"\.[0-9a-f]{64}\.[0-9a-f]{16}\.tmp")
_ABANDONED_SECONDS = 600
_SWEEP_EVERY = 64
_SWEEP_PART = 32
"""A process sweeps once it wrote this part of what the files may take."""


@dataclass(frozen=True)
class Usage:
    """What is in the folder.

    Attributes:
        files: How many files have the names of tables.
        bytes: What these, and those that killed processes left, take on the disk.
        problem: Why the folder can't be used; None where it can, or is not there yet.
    """

    files: int
    bytes: int
    problem: str | None = None


class Disk:
    """The files below ``root``, of ``limit`` bytes together. Safe in threads and processes. Raises nothing: what fails
    is counted, and logged once."""

    def __init__(self, root: Path | None, limit: int, ttl: float, counts: Counts) -> None:
        self._root = root
        self.limit = limit
        self._ttl = ttl
        self._counts = counts
        self._patience = Patience()
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self._saves = 0
        self._unswept = 0

    @property
    def root(self) -> Path | None:
        """The folder; None where there is none."""
        return None if self._root is None else self._root / _FOLDER

    def read(self, name: str, key: str) -> Saved | None:
        """What was saved of a table, if it can be believed: ours, whole, of this table, and neither older than the time
        to live nor from the future. A file that can't is removed. None, too, from a disk that does not answer."""
        return None if self._root is None else self._patience.wait_for(lambda: self._read(name, key))

    def _read(self, name: str, key: str) -> Saved | None:
        try:
            with self._opened(create=False) as folder:
                data = content(folder, f"{name}.json", LARGEST)
                if data is None:
                    return None
                found = decode(data)
                if found is not None and found.key == key and self.state_of(found) == "fresh":
                    return found
                if found is None or found.key != key or self.state_of(found) != "expired":
                    self._counts.add("rejected_files")
                with suppress(OSError):
                    os.unlink(f"{name}.json", dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._say("read", error)
        return None

    def state_of(self, saved: Saved) -> str:
        """``fresh``; or why it is not served: ``expired``, or ``from the future`` by the clock of this host."""
        age = host_time() - saved.saved_at
        if age < 0:
            return "from the future"
        return "fresh" if age <= self._ttl * 1000 else "expired"

    def save(self, name: str, saved: Saved) -> bool:
        """Write a table's file, unless its description may hold a secret, or does not survive being written."""
        if self._root is None or holds_secrets(saved):
            return False
        data = encode(saved)
        if len(data) > LARGEST or not survives(saved, data):
            return False
        try:
            with self._opened(create=True) as folder:
                replace(folder, name, data)
                self._saves += 1
                self._unswept += len(data)
                if self._saves % _SWEEP_EVERY == 1 or self._unswept > self.limit // _SWEEP_PART:
                    self._unswept = 0
                    self._sweep(folder)
        except OSError as error:
            self._counts.add("failed_saves")
            self._say("written", error)
            return False
        self._counts.add("saves")
        return True

    def drop(self, name: str) -> bool:
        """Remove a table's file. Returns whether there was one."""
        with suppress(OSError), self._opened(create=False) as folder:
            os.unlink(f"{name}.json", dir_fd=folder)
            return True
        return False

    def clear(self) -> int:
        """Remove all files, remains of killed processes too. Returns how many tables they were of."""
        count = 0
        with suppress(OSError), self._opened(create=False) as folder:
            for found in _ours(folder):
                with suppress(OSError):
                    os.unlink(found.name, dir_fd=folder)
                    count += not found.is_temporary
        return count

    def entries(self) -> list[tuple[Saved, int]]:
        """All tables that can be read, and the bytes of their files; the newest first."""
        told: list[tuple[Saved, int]] = []
        with suppress(OSError), self._opened(create=False) as folder:
            for found in _ours(folder):
                with suppress(OSError):
                    data = None if found.is_temporary else content(folder, found.name, LARGEST)
                    saved = None if data is None else decode(data)
                    if saved is not None and found.name == f"{file_name(saved.key)}.json" and key_parts(saved.key):
                        told.append((saved, found.bytes))
        return sorted(told, key=lambda each: -each[0].saved_at)

    def usage(self) -> Usage:
        """What all of it takes, damaged files too, and whether the folder can be used."""
        try:
            with self._opened(create=False) as folder:
                found = _ours(folder)
        except FileNotFoundError:
            return Usage(0, 0)
        except OSError as error:
            return Usage(0, 0, str(error))
        return Usage(sum(not each.is_temporary for each in found), sum(each.bytes for each in found))

    @contextmanager
    def _opened(self, *, create: bool) -> Iterator[int]:
        """The folder's descriptor. Raises `FileNotFoundError` where there is none, and other `OSError`."""
        if self._root is None:
            raise FileNotFoundError("there is no folder for the cache")
        root = open_private(self._root, create=create)
        try:
            folder = open_private(self._root / _FOLDER, create=create, within=root)
        finally:
            os.close(root)
        try:
            yield folder
        finally:
            os.close(folder)

    def _sweep(self, folder: int) -> None:
        """Remove the files that were written longest ago, down to the limit, and what killed processes left. How old
        those are is told by the folder's own date, which a rename just set, so no clock has to be right. What is later
        than that was written before the clock went back, and goes first: it would be the newest for ever."""
        now = os.fstat(folder).st_mtime_ns
        found = sorted(_ours(folder), key=lambda each: each.written_at if each.written_at <= now else 0, reverse=True)
        total = 0
        for each in found:
            total += each.bytes
            abandoned = each.is_temporary and abs(now - each.written_at) > _ABANDONED_SECONDS * 1_000_000_000
            if abandoned or (total > self.limit and not each.is_temporary):
                with suppress(OSError):
                    os.unlink(each.name, dir_fd=folder)

    def _say(self, what: str, error: OSError) -> None:
        """Once per kind of failure: it harms nobody, and would be said for each table."""
        with self._lock:
            kind = f"{what} {type(error).__name__} {error.errno}"
            if kind in self._said:
                return
            self._said.add(kind)
        level = logging.WARNING if isinstance(error, UnsafeFolder) else logging.INFO
        log.log(level, "the cache of tables' metadata could not be %s, and is done without: %s", what, error)


def _ours(folder: int) -> list[Found]:
    """The files with names of ours. Raises `OSError` where the folder can't be listed."""
    found: list[Found] = []
    for name in os.listdir(folder):
        is_temporary = _TEMPORARY.fullmatch(name) is not None
        if is_temporary or _NAME.fullmatch(name):
            with suppress(OSError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                found.append(Found(name, is_temporary, allocated(status), status.st_mtime_ns))
    return found
