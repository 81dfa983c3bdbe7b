"""The tier on the disk: one file per table, which all processes of a user on a host share.

Nothing here is needed, and nothing is trusted: whatever goes wrong, a table is loaded. A file is written beside its
name and renamed, so a reader finds the old one or the new one; nothing is synced, as a checksum tells a torn one.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from laketier.spi import host_time
from laketier.tables.metadata.counts import Counts
from laketier.tables.metadata.document import LARGEST, Saved, decode, encode, holds_secrets, survives
from laketier.tables.metadata.folder import UnsafeFolder, open_private

log = logging.getLogger(__name__)

_FOLDER = "tables-1"
"""Of files of this version. A later one uses another folder."""
_NAME = re.compile(r"[0-9a-f]{64}\.json")
_TEMPORARY = re.compile(r"\.[0-9a-f]{64}\.[0-9a-f]{16}\.tmp")
_ABANDONED_SECONDS = 600
_SWEEP_EVERY = 64


class Disk:
    """The files below ``root``, of ``limit`` bytes together. Safe in threads and processes. Raises nothing: what fails
    is counted, and logged once."""

    def __init__(self, root: Path | None, limit: int, ttl: float, counts: Counts) -> None:
        self._root = root
        self.limit = limit
        self._ttl = ttl
        self._counts = counts
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self._saves = 0

    @property
    def root(self) -> Path | None:
        """The folder; None where there is none."""
        return None if self._root is None else self._root / _FOLDER

    def read(self, name: str, key: str) -> Saved | None:
        """What was saved of a table, if it can be believed: ours, whole, of this table, and neither older than the time
        to live nor from the future. A file that can't is removed."""
        try:
            with self._opened(create=False) as folder:
                data = _content(folder, f"{name}.json")
                if data is None:
                    return None
                found = decode(data)
                age = None if found is None else host_time() - found.saved_at
                if found is not None and age is not None and found.key == key and 0 <= age <= self._ttl * 1000:
                    return found
                if age is None or age < 0 or (found is not None and found.key != key):
                    self._counts.add("rejected_files")
                with suppress(OSError):
                    os.unlink(f"{name}.json", dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._say("read", error)
        return None

    def save(self, name: str, saved: Saved) -> bool:
        """Write a table's file, unless its description may hold a secret, or does not survive being written."""
        if self._root is None or holds_secrets(saved.table):
            return False
        data = encode(saved)
        if len(data) > LARGEST or not survives(saved, data):
            return False
        try:
            with self._opened(create=True) as folder:
                _replace(folder, name, data)
                self._saves += 1
                if self._saves % _SWEEP_EVERY == 1:
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
            for entry in os.listdir(folder):
                if _NAME.fullmatch(entry) or _TEMPORARY.fullmatch(entry):
                    with suppress(OSError):
                        os.unlink(entry, dir_fd=folder)
                        count += entry.endswith(".json")
        return count

    def entries(self) -> list[tuple[Saved, int]]:
        """All tables that can be read, and the bytes of their files; the newest first."""
        found: list[tuple[Saved, int]] = []
        with suppress(OSError), self._opened(create=False) as folder:
            for entry in sorted(filter(_NAME.fullmatch, os.listdir(folder))):
                with suppress(OSError):
                    data = _content(folder, entry)
                    saved = None if data is None else decode(data)
                    if data is not None and saved is not None:
                        found.append((saved, len(data)))
        return sorted(found, key=lambda each: -each[0].saved_at)

    def usage(self) -> tuple[int, int]:
        """How many files there are, and their bytes."""
        sizes: list[int] = []
        with suppress(OSError), self._opened(create=False) as folder:
            for entry in filter(_NAME.fullmatch, os.listdir(folder)):
                with suppress(OSError):
                    sizes.append(os.stat(entry, dir_fd=folder, follow_symlinks=False).st_size)
        return len(sizes), sum(sizes)

    @contextmanager
    def _opened(self, *, create: bool) -> Iterator[int]:
        """The folder's descriptor. Raises `FileNotFoundError` where there is none, and other `OSError`."""
        if self._root is None:
            raise FileNotFoundError("there is no folder for the cache")
        os.close(open_private(self._root, create=create))
        folder = open_private(self._root / _FOLDER, create=create)
        try:
            yield folder
        finally:
            os.close(folder)

    def _sweep(self, folder: int) -> None:
        """Remove the files that were written longest ago, down to the limit, and what killed processes left. How old
        those are is told by the dates of the folder alone, so no clock has to be right."""
        dated: list[tuple[int, int, str]] = []
        for entry in os.listdir(folder):
            if _NAME.fullmatch(entry) or _TEMPORARY.fullmatch(entry):
                with suppress(OSError):
                    found = os.stat(entry, dir_fd=folder, follow_symlinks=False)
                    dated.append((found.st_mtime_ns, found.st_size, entry))
        dated.sort(reverse=True)
        now = _time_of(folder, max((date for date, _, _ in dated), default=0))
        total = 0
        for date, size, entry in dated:
            total += size
            abandoned = entry.startswith(".") and now - date > _ABANDONED_SECONDS * 1_000_000_000
            if abandoned or (total > self.limit and not entry.startswith(".")):
                with suppress(OSError):
                    os.unlink(entry, dir_fd=folder)

    def _say(self, what: str, error: OSError) -> None:
        """Once per kind of failure: it harms nobody, and would be said for each table."""
        with self._lock:
            kind = f"{what} {type(error).__name__} {error.errno}"
            if kind in self._said:
                return
            self._said.add(kind)
        level = logging.WARNING if isinstance(error, UnsafeFolder) else logging.INFO
        log.log(level, "the cache of tables' metadata could not be %s, and is done without: %s", what, error)


def _content(folder: int, entry: str) -> bytes | None:
    """The content of a regular file of ours; None for a pipe, a link, another user's, or one that is too large. Raises
    `OSError`."""
    try:
        descriptor = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError:
        found = os.stat(entry, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            return b""
        raise
    with open(descriptor, "rb", closefd=True) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > LARGEST:
            return b""
        return file.read(LARGEST + 1)


def _replace(folder: int, name: str, data: bytes) -> None:
    temporary = f".{name}.{token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb", closefd=True) as file:
            file.write(data)
        os.rename(temporary, f"{name}.json", src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _time_of(folder: int, newest: int) -> int:
    """The time by the clock that dates the folder's files, in ns: one was written just now."""
    return max(newest, os.fstat(folder).st_mtime_ns)
