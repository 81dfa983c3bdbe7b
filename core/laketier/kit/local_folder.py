"""A folder on a local disk, and the regular files below it. No symbolic link leads out of it.

A path is walked from folder to folder by their descriptors. Neither a folder on the way nor the file may be a link.
So an attacker who swaps a folder for a link between a check and its use can't redirect a read, move or delete. The
folder itself is the user's choice, and may be reached through links.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from laketier.kit.confine import confined, escapes
from laketier.kit.failpoints import failpoint
from laketier.spi.errors import OutsideTable

log = logging.getLogger(__name__)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LONGEST_NAME = 255
_SHOWN = 80
_IS_LINK = (errno.ELOOP, errno.EMLINK)
"""What kernels answer when the last name is a link, and O_NOFOLLOW was given."""


@dataclass(frozen=True)
class FoundFile:
    """A file that a listing found. ``path`` is relative to the folder. ``modified_at``: ms since the epoch, UTC, by the
    storage's clock. ``named_at``: the same of when the file got its name, or of a later change of it."""

    path: str
    bytes: int
    modified_at: int
    named_at: int


@dataclass(frozen=True)
class LocalFolder:
    """A folder of a local disk. All methods take paths relative to ``root``, confine them, and raise `OutsideTable`
    for paths that lead out. ``root`` need not exist."""

    root: Path

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of a regular file. None when there is no file. Raises `OutsideTable` for a link."""
        try:
            with self._parent(path) as (folder, name):
                return self._status(folder, name, path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, path: str) -> int:
        """Open a regular file for reading. The caller closes the descriptor. Raises `FileNotFoundError`."""
        with self._parent(path) as (folder, name):
            try:
                # Without O_NONBLOCK, a pipe in a file's place would wait for a writer for ever.
                found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            except OSError as error:
                if error.errno in _IS_LINK:
                    raise self._link(path, path) from error
                raise
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise FileNotFoundError(errno.ENOENT, "not a regular file", str(self.root / path))
        return found

    def unlink(self, path: str) -> bool:
        """Delete a file. False when it did not exist. Raises `OutsideTable` for a link, `OSError` for a folder."""
        try:
            with self._parent(path) as (folder, name):
                self._status(folder, name, path)
                os.unlink(name, dir_fd=folder)  # of a link that was put there just now, the link alone
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def link(self, source: str, target: str) -> None:
        """Give the regular file ``source`` a second name. Raises `FileNotFoundError`, `FileExistsError`."""
        with self._parent(source) as (old, old_name), self._parent(target) as (new, new_name):
            if self._status(old, old_name, source) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.root / source))
            os.link(old_name, new_name, src_dir_fd=old, dst_dir_fd=new, follow_symlinks=False)
            if not stat.S_ISREG(os.stat(new_name, dir_fd=new, follow_symlinks=False).st_mode):
                os.unlink(new_name, dir_fd=new)  # swapped for a link since it was looked at
                raise self._link(source, source)

    def make_folders(self, path: str) -> None:
        """Create a folder and its missing parents below ``root``, each durable in its own parent. Idempotent."""
        self._confined(path)
        here, above, done = os.open(self.root, _FOLDER), -1, ""
        try:
            for name in path.split("/"):
                done = f"{done}/{name}" if done else name
                try:
                    os.mkdir(name, dir_fd=here)
                    made = True
                except FileExistsError:
                    made = False
                if made and above >= 0:
                    # Of those that were there, the last: who made it may have been killed before it synced its name.
                    os.fsync(above)
                if made or done == path:
                    os.fsync(here)
                below = self._step(here, name, done, path)
                if above >= 0:
                    os.close(above)
                here, above = below, here
                if made:
                    os.close(above)
                    above = -1
        finally:
            os.close(here)
            if above >= 0:
                os.close(above)

    def remove_folder(self, path: str) -> None:
        """Remove a folder with all files below it. One rename removes it for readers and writers. The deletion that
        follows may be interrupted; the next removal of a folder with this name deletes the rest. Follows no links.
        Raises `FileNotFoundError`, and `OutsideTable` if the folder is a link itself."""
        with self._parent(path) as (folder, name):
            if _is_link(folder, name):
                raise self._link(path, path)
            start = f".dropped-{name[:100]}-"
            gone = f"{start}{uuid.uuid4().hex}"
            os.rename(name, gone, src_dir_fd=folder, dst_dir_fd=folder)
            self.sync_folder(path.rpartition("/")[0])
            failpoint("drop.after_rename")
            with suppress(FileNotFoundError):  # another process removes it as what was left
                shutil.rmtree(gone, dir_fd=folder)
            for left in os.listdir(folder):
                if re.fullmatch(re.escape(start) + "[0-9a-f]{32}", left):
                    # Another process removes it, or another user left it: this folder is gone all the same.
                    shutil.rmtree(left, dir_fd=folder, ignore_errors=True)

    def sync_folder(self, path: str = "") -> None:
        """Flush a folder: the names created or removed in it. Raises `FileNotFoundError`."""
        with self._folder(path, asked=path) as folder:
            os.fsync(folder)

    def refuse_links(self, path: str) -> None:
        """Raise `OutsideTable` unless ``path`` is confined and no existing part of it is a link. For files that are
        then opened by name: to read them, or to create them under an unguessable name."""
        # Each commit asks for some folders, and a `Path` of each takes longer than its look.
        root, done = str(self.root), ""
        for name in self._confined(path).split("/"):
            done = f"{done}/{name}" if done else name
            try:
                mode = os.lstat(f"{root}/{done}").st_mode
            except (FileNotFoundError, NotADirectoryError):
                return
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:  # nothing can be there
                    return
                raise
            if stat.S_ISLNK(mode):
                raise self._link(path, done)

    def files(self, folder: str = "", *, recursive: bool = True) -> Iterator[FoundFile]:
        """List all regular files below ``folder``, in no order. Links are neither followed nor listed. Links and
        names that are no confined path (`escapes`) are left out and logged. Empty when the folder does not exist."""
        try:
            with self._folder(folder, asked=folder) as top:
                yield from self._files(top, folder, recursive=recursive)
        except FileNotFoundError:
            return

    def _files(self, here: int, prefix: str, *, recursive: bool) -> Iterator[FoundFile]:
        with os.scandir(here) as entries:
            found = list(entries)
        for entry in found:
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            why = "it is a symbolic link" if entry.is_symlink() else escapes(path)
            if why is not None:
                log.warning("%s: %a is left alone, because %s", self.root, path, why)
                continue
            with suppress(FileNotFoundError):  # deleted, or moved, meanwhile
                if entry.is_dir(follow_symlinks=False):
                    if recursive:
                        below = self._step(here, entry.name, path, path)
                        try:
                            yield from self._files(below, path, recursive=True)
                        finally:
                            os.close(below)
                else:
                    status = os.stat(entry.name, dir_fd=here, follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        written, changed = status.st_mtime_ns // 1_000_000, status.st_ctime_ns // 1_000_000
                        yield FoundFile(path, status.st_size, written, max(written, changed))

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        folder, _, name = self._confined(path).rpartition("/")
        with self._folder(folder, asked=path) as descriptor:
            yield descriptor, name

    @contextmanager
    def _folder(self, path: str, *, asked: str) -> Iterator[int]:
        here = os.open(self.root, _FOLDER)
        try:
            if path:
                self._confined(path)
                done = ""
                for name in path.split("/"):
                    done = f"{done}/{name}" if done else name
                    below = self._step(here, name, done, asked)
                    os.close(here)
                    here = below
            yield here
        finally:
            os.close(here)

    def _step(self, here: int, name: str, done: str, asked: str) -> int:
        try:
            return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
        except OSError as error:
            # With O_DIRECTORY, Linux says of a link that it is no folder.
            if error.errno in (*_IS_LINK, errno.ENOTDIR) and _is_link(here, name):
                raise self._link(asked, done) from error
            raise

    def _confined(self, path: str) -> str:
        confined(path, where=str(self.root))
        longest = max(path.split("/"), key=lambda name: len(name.encode()))
        if len(longest.encode()) > _LONGEST_NAME:
            raise OutsideTable(
                f"{path[:_SHOWN]!r}… is not the path of a file on a disk",
                where=str(self.root),
                why=f"one of its names has {len(longest.encode())} bytes, and {_LONGEST_NAME} are the most",
            )
        return path

    def _status(self, folder: int, name: str, path: str) -> os.stat_result | None:
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            raise self._link(path, path)
        return found if stat.S_ISREG(found.st_mode) else None

    def _link(self, path: str, link: str) -> OutsideTable:
        return OutsideTable(
            f"{path!r} is reached through a symbolic link, and was not touched",
            where=str(self.root),
            why=f"{link!r} is a link, and may lead out of the table",
            fix="Put the files themselves there, or mount their file system, and remove the link.",
        )


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
