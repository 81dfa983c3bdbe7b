"""The files of a landing zone on a disk, reached without being led astray.

Whoever may write there may put links, pipes and names of any bytes into it, and change them while they are looked at.
So each folder is opened from the one above it, and the system follows no link: not while the zone is listed, and not
when a file is opened. What may not be read is left out on its own, and told. What the storage fails to show is not left
out: a file that was taken, and is in no listing, would count as deleted.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from laketier.codecs.said import shown
from laketier.kit.foreign_tables import table_mark
from laketier.kit.looks import files_and_folders

_DEEPEST = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_INODE = 2**63 - 1
_FIRST_NS, _LAST_NS = -(2**63), 2**63 - 1
"""What 64 bits count of nanoseconds, as ledgers do: the years 1677 to 2262. Anybody may give a file any time."""
_LEADS_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""What is wrong with a link itself, and not with the storage."""
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
}


class Astray(Exception):
    """A name does not lead to a file within the landing zone. Its text says why."""


@dataclass(frozen=True)
class ListedFile:
    """A regular file. ``path``: below the table's folder. ``shared``: whether it may have another name there, too."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    shared: bool

    @classmethod
    def of(cls, path: str, found: os.stat_result, *, by_link: bool = False) -> ListedFile:
        """Describe a file by the system's status of it."""
        shared = by_link or found.st_nlink > 1
        changed = min(max(found.st_mtime_ns, _FIRST_NS), _LAST_NS)
        return cls(path, found.st_size, changed, found.st_ino & _INODE, shared)


@dataclass
class Listing:
    """The files of a folder. ``refused``: what was left out, as it may be shown, and why. ``mark``: what says that
    not all of them count, as they are another table's; None where nothing does."""

    files: list[ListedFile] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    mark: str | None = None

    def refuse(self, path: str, why: str) -> None:
        self.refused[escaped(path)] = why


def escaped(name: str) -> str:
    """A name of any bytes, as text that can be kept and shown."""
    return shown(os.fsencode(name).decode("utf-8", "backslashreplace"), most=4096)


def is_text(name: str) -> bool:
    """Whether the bytes of a name are UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def opened_beneath(root: str, path: str, *, follow: bool) -> Iterator[int]:
    """A descriptor of the regular file ``path`` below ``root``. ``follow``: whether links that end below ``root`` are
    followed. Raises `Astray`, and `OSError`."""
    if follow:
        root, path = _resolved(root, path)
    descriptor = _open_beneath(root, path, _FILE)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise Astray(f"it is {_kind(mode)}, not a file")
        yield descriptor
    finally:
        os.close(descriptor)


def list_folder(root: str, path: str, *, skip: Callable[[str], bool], follow: bool, deep: bool = True) -> Listing:
    """The files below the folder ``path`` of ``root`` (with ``deep``, also those of its folders), without those whose
    names ``skip`` says to leave alone. All of them, or none: a folder below that can't be read raises `OSError` too.
    Raises `Astray` when the folder is a link."""
    return _Walk(root, path, skip, follow, deep).run()


class _Walk:
    def __init__(self, root: str, path: str, skip: Callable[[str], bool], follow: bool, deep: bool) -> None:
        self._root, self._skip, self._follow, self._deep = root, skip, follow, deep
        self._base = path
        self._found = Listing()
        self._seen: set[tuple[int, int]] = set()
        self._links: list[str] = []

    def run(self) -> Listing:
        self._walk(self._base, "", must=True)
        # Links come last, and in order: what is there by itself has its own name.
        done = 0
        while done < len(self._links):
            batch = sorted(self._links[done:])
            done = len(self._links)
            for path in batch:
                self._follow_link(path)
        return self._found

    def _walk(self, place: str, shown_as: str, *, must: bool = False) -> None:
        """The folder ``place`` of the root, whose files are named below ``shown_as``."""
        pending = [(place, shown_as)]
        while pending:
            place, prefix = pending.pop()
            if prefix.count("/") > _DEEPEST:
                self._found.refuse(prefix, f"it is nested more than {_DEEPEST} folders deep")
                continue
            try:
                descriptor = self._open_folder(place, must and not prefix)
            except (FileNotFoundError, NotADirectoryError):
                if must and not prefix:
                    raise
                continue  # removed since its name was read
            except Astray as error:
                if must and not prefix:
                    raise
                self._found.refuse(prefix, str(error))
                continue
            try:
                pending += [(_join(place, name), f"{prefix}{name}/") for name in self._entries(descriptor, prefix)]
            except OSError as error:
                raise OSError(error.errno, error.strerror, os.path.join(self._root, place)) from error
            finally:
                os.close(descriptor)

    def _open_folder(self, place: str, is_base: bool) -> int:
        if is_base and self._follow:
            root, place = _resolved(self._root, place)
        else:
            root = self._root
        descriptor = _open_beneath(root, place, _FOLDER | os.O_NOFOLLOW)
        found = os.fstat(descriptor)
        self._seen.add((found.st_dev, found.st_ino))
        return descriptor

    def _entries(self, descriptor: int, prefix: str) -> list[str]:
        """Take the files of a folder; its folders are the answer."""
        folders = []
        with os.scandir(descriptor) as found_there:
            entries = list(found_there)
            mark = table_mark(prefix, *files_and_folders(entries))
            if mark is not None and self._found.mark is None:
                self._found.mark = f"{prefix}{mark}"
            for entry in entries:
                if self._skip(entry.name):
                    continue
                path = f"{prefix}{entry.name}"
                if not is_text(entry.name):
                    self._found.refuse(path, "its name is not UTF-8")
                    continue
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(found.st_mode):
                    self._found.files.append(ListedFile.of(path, found))
                elif stat.S_ISDIR(found.st_mode):
                    self._found.folders.append(path)
                    folders += [entry.name] if self._deep else []
                elif stat.S_ISLNK(found.st_mode) and self._follow:
                    self._links.append(path)
                else:
                    self._found.refuse(path, f"it is {_kind(found.st_mode)}")
        return folders

    def _follow_link(self, path: str) -> None:
        try:
            root, real = _resolved(self._root, _join(self._base, path))
            found = os.stat(os.path.join(root, real), follow_symlinks=False)
        except Astray as error:
            self._found.refuse(path, str(error))
            return
        except OSError as error:
            if error.errno not in _LEADS_NOWHERE:
                raise
            self._found.refuse(path, (error.strerror or str(error)).lower())
            return
        if stat.S_ISREG(found.st_mode):
            self._found.files.append(ListedFile.of(path, found, by_link=True))
        elif not stat.S_ISDIR(found.st_mode):
            self._found.refuse(path, f"it leads to {_kind(found.st_mode)}")
        elif (found.st_dev, found.st_ino) in self._seen:
            self._found.refuse(path, "it is a link to a folder that is looked at already")
        else:
            self._found.folders.append(path)
            if self._deep:
                self._seen.add((found.st_dev, found.st_ino))
                self._walk_real(real, f"{path}/")

    def _walk_real(self, real: str, prefix: str) -> None:
        root, self._root = self._root, os.path.realpath(self._root)
        try:
            self._walk(real, prefix)
        finally:
            self._root = root


def _resolved(root: str, path: str) -> tuple[str, str]:
    """Where the links of ``path`` lead to, as a root and a path without any. Raises `Astray` for what is not below."""
    root = os.path.realpath(root)
    try:
        real = os.path.realpath(os.path.join(root, path), strict=True)
    except OSError as error:
        if error.errno in _LEADS_NOWHERE or _is_beneath(str(error.filename), root):
            raise
        real = str(error.filename)  # what can't be looked at there is nobody's concern here
    if not _is_beneath(real, root):
        raise Astray("it is a link that leads out of the landing zone")
    return root, os.path.relpath(real, root)


def _is_beneath(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _open_beneath(root: str, path: str, flags: int) -> int:
    """Component by component, so that none can be swapped for a link between a look and the opening."""
    parts = [part for part in path.split("/") if part and part != "."]
    if ".." in parts or "\0" in path:
        raise Astray("its path leads out of its folder")
    descriptor = os.open(root, _FOLDER)
    at = 0
    try:
        for at, part in enumerate(parts):
            is_last = at == len(parts) - 1
            inner = os.open(part, flags if is_last else _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
    except OSError as error:
        os.close(descriptor)
        if _is_link(root, parts[: at + 1]):
            raise Astray("it is a symbolic link, or within a folder that is one") from None
        raise OSError(error.errno, error.strerror, os.path.join(root, *parts)) from None
    return descriptor


def _is_link(root: str, parts: list[str]) -> bool:
    return os.path.islink(os.path.join(root, *parts))


def _join(place: str, name: str) -> str:
    return f"{place}/{name}" if place and place != "." else name


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "of an unknown kind")
