"""A local disk as POSIX promises it and no better, and what it holds when the power comes back.

- The bytes of a file are durable when the file was synced.
- A name, its removal and its move are durable when the folder was synced. Until then each may be there or not.

The calls of a process are seen before they happen. So the model reads what is there, and needs no bytes of a write.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from laketier_conformance import apart
from laketier_conformance.interposed.effects import Effect

SYNCS = ("fsync", "fdatasync")
SYNC_ALL = ("sync", "syncfs")
REMOVES = ("unlink", "unlinkat", "rmdir")
PUBLISHES = ("rename", "link")
WRITES = (
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile", "copy_file_range", "ftruncate", "truncate",
    "fallocate",
)  # fmt: skip

Inode = tuple[int, int]
Names = dict[str, Inode]


@dataclass(frozen=True)
class Entry:
    """What a name leads to: a file's bytes, a folder (None), or where a symbolic link leads (text)."""

    inode: Inode
    holds: bytes | str | None


Tree = Mapping[str, Entry]
"""By path below the disk's root."""


@dataclass(frozen=True)
class Unsynced:
    """What one missing sync leaves to a power cut: ``thing``. ``tree`` is the disk that lost this alone."""

    thing: str
    tree: Tree


class Disk:
    """All below a folder. What is there at first is durable."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self._kept: dict[Inode, int] = {}
        self._holds: dict[Inode, bytes | str | None] = {}
        self._names: dict[Inode, Names] = {}
        self._removed: dict[Inode, set[str]] = defaultdict(set)
        self._synced: set[Inode] = set()
        self._spoilt: set[Inode] = set()
        self._unbuffered: set[Inode] = set()
        self._last = ""
        self._publishes = False
        self._sync_all()

    def close(self) -> None:
        """Let go of its files."""
        for descriptor in self._kept.values():
            os.close(descriptor)
        self._kept.clear()

    def apply(self, effect: Effect, *, fails: bool = False) -> bool:
        """Take a call that is about to happen. Whether a power cut after it may leave something new."""
        self._publishes = effect.call.startswith(PUBLISHES) and not fails
        if effect.call in SYNC_ALL:
            if not fails:
                self._sync_all()
            return True
        if not effect.on[-1].startswith(f"{self.root}{os.sep}") and effect.on[-1] != str(self.root):
            return False
        if effect.call in SYNCS:
            with suppress(OSError):
                self._sync(effect.through, fails=fails)
            return True
        if effect.call in WRITES:
            inode = _inode(os.stat(effect.through or effect.on[0]))
            if effect.unbuffered:
                self._unbuffered.add(inode)
            self._spoilt.discard(inode)  # there is something to sync again
            return effect.unbuffered
        if fails:
            return False
        if effect.call in REMOVES:
            with suppress(OSError):
                self._removed[_inode(os.stat(os.path.dirname(effect.on[0])))].add(os.path.basename(effect.on[0]))
        self._last = effect.on[-1]
        # A new file or folder alone is what a kill leaves.
        return self._publishes or effect.call in REMOVES

    def states(self) -> Iterator[tuple[str, Tree]]:
        """Some that a power cut may leave, of all that it may. The first is the worst for what was answered."""
        self._take_unbuffered()
        yield "nothing is there that was not synced", self._tree(self._durable)
        yield "all names are there, and half of the bytes that were not synced", self._tree(self._current, torn=True)
        if self._publishes:
            yield "all names are there, without the bytes that were not synced", self._tree(self._current)
            yield "of what was not synced, only the last name is there", self._tree(self._durable_and_last())
        elif any(self._removed.values()):
            yield "of what was not synced, only removals are there", self._tree(self._only_removed)

    def now(self) -> Tree:
        """What is there, durable or not."""
        return self._tree(self._current, whole=True)

    def unsynced(self) -> Iterator[Unsynced]:
        """The bytes and the names that are there and not durable, each lost alone: a file keeps the bytes that it had
        when it was synced last, which may be none, and a name leads to what it led to."""
        self._take_unbuffered()
        now = self.now()
        for path, entry in now.items():
            if isinstance(entry.holds, bytes) and entry.holds != self._holds[entry.inode]:
                kept = Entry(entry.inode, self._holds[entry.inode])
                alike = {name: kept for name, each in now.items() if each.inode == entry.inode}
                if path == min(alike):
                    yield Unsynced(f"the bytes of {path}", {**now, **alike})
            above, name = os.path.split(path)
            folder = self._know(os.path.join(self.root, above))
            before = self._names.get(folder, {}).get(name)
            if before != entry.inode:
                left = {each: found for each, found in now.items() if not f"{each}/".startswith(f"{path}/")}
                if before is not None:
                    left[path] = Entry(before, self._holds[before])
                yield Unsynced(f"the name {path}", dict(sorted(left.items())))

    # -- names ------------------------------------------------------------------------------------------------------

    def _durable(self, folder: Inode, path: str) -> Names:
        return self._names.get(folder, {})

    def _only_removed(self, folder: Inode, path: str) -> Names:
        return {n: inode for n, inode in self._durable(folder, path).items() if n not in self._removed[folder]}

    def _current(self, folder: Inode, path: str) -> Names:
        return {entry.name: self._know(entry.path) for entry in _listed(path)}

    def _durable_and_last(self) -> Callable[[Inode, str], Names]:
        above, name = os.path.split(self._last)

        def names(folder: Inode, path: str) -> Names:
            found = self._durable(folder, path)
            if path == above:
                with suppress(OSError):
                    return {**found, name: self._know(self._last)}
            return found

        return names

    def _tree(self, names: Callable[[Inode, str], Names], *, torn: bool = False, whole: bool = False) -> Tree:
        """``torn``: with half of the bytes of files that were never synced. ``whole``: with all bytes."""
        found: dict[str, Inode] = {}

        def walk(folder: Inode, path: str) -> None:
            for name, inode in sorted(names(folder, path).items()):
                below = os.path.join(path, name)
                found[os.path.relpath(below, self.root)] = inode
                if self._holds[inode] is None:
                    walk(inode, below)

        walk(self._know(str(self.root)), str(self.root))
        holds = {inode: self._holds[inode] for inode in found.values()}
        if torn:
            halves = self._read(each for each, content in holds.items() if content == b"" and each not in self._synced)
            holds |= {inode: now[: len(now) // 2] for inode, now in halves.items()}
        if whole:
            holds |= self._read(each for each, content in holds.items() if isinstance(content, bytes))
        return {path: Entry(inode, holds[inode]) for path, inode in found.items()}

    # -- what is durable --------------------------------------------------------------------------------------------

    def _take_unbuffered(self) -> None:
        self._holds |= self._read(self._unbuffered & self._kept.keys())

    def _know(self, path: str) -> Inode:
        """A file that nobody synced yet holds nothing. It is kept open, so that no other one gets its number."""
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        found = os.fstat(descriptor)
        inode = _inode(found)
        if inode in self._kept:
            os.close(descriptor)
            return inode
        self._kept[inode] = descriptor
        is_link = stat.S_ISLNK(found.st_mode)
        self._holds[inode] = os.readlink(path) if is_link else None if stat.S_ISDIR(found.st_mode) else b""
        return inode

    def _sync(self, path: str, *, fails: bool) -> None:
        # Through a descriptor, so that a file counts that has lost the name under which it was opened.
        descriptor = os.open(path, os.O_PATH)
        try:
            found = os.fstat(descriptor)
            inode = _inode(found)
            if inode not in self._kept:
                self._kept[inode] = os.dup(descriptor)
                self._holds[inode] = None if stat.S_ISDIR(found.st_mode) else b""
            if not stat.S_ISDIR(found.st_mode):
                # Once a sync failed, the kernel takes the pages for written: another sync finds nothing to do.
                if fails:
                    self._spoilt.add(inode)
                if inode not in self._spoilt:
                    self._synced.add(inode)
                    self._holds |= self._read([inode])
            elif not fails:
                real = os.readlink(f"/proc/self/fd/{descriptor}")
                self._names[inode] = self._current(inode, real)
                self._removed.pop(inode, None)
        finally:
            os.close(descriptor)

    def _sync_all(self) -> None:
        waiting, files = [str(self.root)], list[Inode]()
        while waiting:
            folder = waiting.pop()
            inode = self._know(folder)
            self._names[inode] = self._current(inode, folder)
            for entry in _listed(folder):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    files.append(self._know(entry.path))
        self._holds |= self._read(files)
        self._removed.clear()

    def _read(self, inodes: Iterable[Inode]) -> dict[Inode, bytes]:
        """Of files that are kept, also once they have no name."""
        paths = {inode: f"/proc/{os.getpid()}/fd/{self._kept[inode]}" for inode in inodes}
        if not _is_open_to_others():
            return {inode: Path(path).read_bytes() for inode, path in paths.items()}
        found = apart.read_all(paths.values())
        return {inode: found[path] for inode, path in paths.items()}


@cache
def _is_open_to_others() -> bool:
    """Whether another process of this user may read what this one has open. A hardened host forbids it, as it forbids
    to trace: then a file is read here, and a format loses the locks that this process has on it."""
    with tempfile.TemporaryFile() as file:
        try:
            apart.read(f"/proc/{os.getpid()}/fd/{file.fileno()}")
        except OSError:
            return False
    return True


def put(tree: Tree, root: Path) -> None:
    """Make a folder hold this and nothing else."""
    for there in _listed(str(root)):
        if there.is_dir(follow_symlinks=False):
            shutil.rmtree(there.path)
        else:
            os.unlink(there.path)
    files: dict[Path, bytes] = {}
    first: dict[Inode, Path] = {}
    for name, entry in tree.items():
        path = root / name
        if entry.holds is None:
            path.mkdir()
        elif isinstance(entry.holds, str):
            path.symlink_to(entry.holds)
        elif entry.inode not in first:
            files[path], first[entry.inode] = entry.holds, path
    apart.write_all(files)
    for name, entry in tree.items():
        if isinstance(entry.holds, bytes) and first[entry.inode] != root / name:
            (root / name).hardlink_to(first[entry.inode])


def same(tree: Tree) -> int:
    """A number that is the same for the same names and bytes."""
    return hash(tuple((path, entry.holds) for path, entry in sorted(tree.items())))


def _inode(found: os.stat_result) -> Inode:
    return found.st_dev, found.st_ino


def _listed(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
