"""Files that lie in a folder of a disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from laketier.codecs.decoding import BadValue
from laketier.kit import LocalFolder
from laketier.kit.durable import fsync_directory
from laketier.kit.foreign_tables import INSIDE, MARKS
from laketier.kit.local_store import LocalStore
from laketier.kit.looks import below, files_and_folders, is_folder, is_there, names_in
from laketier.spi import IncompatibleTable, OutsideTable, TableNotFound
from laketier_localfile.layout import (
    IN_PROGRESS,
    LAYOUT,
    LOST,
    MANIFESTS,
    STAGED_SUFFIX,
    attempt_of,
    attempt_of_staged,
    is_adoptable,
    superseded_path,
)
from laketier_localfile.lying import (
    Identity,
    LyingFiles,
    LyingPlace,
    had_rows,
    kind_of,
    mark_of,
    refuse_table,
    within_table,
)
from laketier_localfile.table import refuse_several_devices


@dataclass(frozen=True)
class DiskPlace(LyingPlace):
    """A `LyingPlace`. Files are known by size, time of change in ns, and inode."""

    location: Path

    @property
    def store(self) -> LocalStore:
        return LocalStore(self.location)

    def is_there(self) -> bool:
        return is_folder(self.location)

    def files(self) -> LyingFiles:
        found = LyingFiles({}, {})
        try:
            device = os.stat(self.location).st_dev
            _walk(found, self.location, "", device)
        except (FileNotFoundError, NotADirectoryError) as error:
            if self.is_there():
                raise IncompatibleTable(
                    "a file or folder went away while the folder was listed",
                    where=str(error.filename),
                    why="something still writes there",
                    fix="Stop what writes into the folder, and run it again.",
                ) from error
            raise TableNotFound("there is no such folder", where=self.where) from error
        return found

    @contextmanager
    def opened(self, path: str, known: Identity, *, durable: bool, whole: bool) -> Iterator[pa.NativeFile]:
        with os.fdopen(LocalFolder(self.location).open(path), "rb") as file:
            if _identity_of(os.fstat(file.fileno())) != known:
                raise BadValue("it changed while it was looked at")
            if durable:
                os.fsync(file.fileno())
            yield pa.PythonFile(file, mode="r")

    def reopened(self, path: str, *, whole: bool) -> AbstractContextManager[pa.NativeFile]:
        found: AbstractContextManager[pa.NativeFile] = pa.OSFile(str(self.location / path))
        return found

    def sync(self, folders: Iterable[str]) -> None:
        for folder in folders:
            fsync_directory(self.location / folder)

    def refuse_unfit(self) -> None:
        refuse_several_devices(self.location)

    def refuse_within_table(self) -> None:
        for folder in self.location.parents:
            mark = mark_of(partial(_names_of, folder))
            if mark is not None:
                raise within_table(self.where, str(folder), kind_of(mark))

    def left_of_table(self) -> str | None:
        location = self.location
        if not any(is_folder(location / name) for name in LAYOUT.own_folders):
            return None
        kept = sorted(names_in(location / MANIFESTS))
        for name in kept:
            if name.endswith(LOST):
                return f"{MANIFESTS}/{name}"
        for name in kept:
            head = f"{MANIFESTS}/{name}/head.json"
            if is_there(location / head) and had_rows(self.store, f"{MANIFESTS}/{name}"):
                return head
        for name in sorted(names_in(location / IN_PROGRESS)):
            # Nobody stages before there is a table; and of files that stay open there may be no others.
            if attempt_of_staged(f"{IN_PROGRESS}/{name}") is not None:
                return f"{IN_PROGRESS}/{name}"
        deleted = not is_there(location / MANIFESTS)  # it is made before the others
        for folder, folders, names in below(location):
            for name in names:
                own = attempt_of(name) is not None and not name.endswith(STAGED_SUFFIX)
                if own or (deleted and is_adoptable(name)):
                    return os.path.relpath(os.path.join(folder, name), location)
            folders[:] = [name for name in folders if name not in (MANIFESTS, IN_PROGRESS)]
        return None

    def end_drop(self) -> bool:
        """One rename removes a table, so what is left lost its manifests otherwise."""
        return False

    def superseded(self, lying: LyingFiles) -> Collection[str]:
        """They are second names of the same file."""
        folder = LocalFolder(self.location)
        there = {path: folder.status(superseded_path(path)) for path in lying.files}
        return [path for path, found in there.items() if found is not None and found.st_ino == lying.files[path][2]]

    def names(self, folder: str) -> list[str]:
        return names_in(self.location / folder)

    def move_aside(self, names: Iterable[str]) -> None:
        for name in names:
            _aside(self.location / MANIFESTS / name)
        if is_folder(self.location / MANIFESTS):
            fsync_directory(self.location / MANIFESTS)


def _aside(path: Path) -> None:
    target = path.with_name(f"{path.name}{LOST}")
    number = 0
    while is_there(target):
        number += 1
        target = path.with_name(f"{path.name}.{number}{LOST}")
    try:
        os.rename(path, target)
    except FileNotFoundError:
        return


def _names_of(folder: Path, inner: str) -> tuple[list[str], list[str]]:
    """The files and the folders in one. Of one whose names are not ours to list, what can be known by a look."""
    try:
        with os.scandir(folder / inner) as entries:
            return files_and_folders(entries)
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except PermissionError:
        return [], [] if inner else [name for name in (*MARKS, INSIDE) if is_folder(folder / name)]


def _walk(lying: LyingFiles, location: Path, prefix: str, device: int) -> None:
    here = location / prefix
    with os.scandir(here) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    refuse_table(str(location), prefix.rstrip("/"), *files_and_folders(found))
    for entry in found:
        path = f"{prefix}{entry.name}"
        if entry.name.startswith(("_", ".")):
            lying.tell_hidden(path)
            continue
        if entry.is_symlink():
            raise OutsideTable(
                f"{path!r} is a symbolic link",
                where=str(location),
                why="plain readers follow it, and a table has only what lies in its own folder",
                fix="Put the file itself there, or name the link _….",
            )
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            _walk(lying, location, f"{path}/", device)
        elif not stat.S_ISREG(status.st_mode):
            lying.left_out[path] = "its name is that of no data file"
        else:
            lying.add(path, _identity_of(status), where=str(location))
            if path in lying.files and status.st_dev != device:
                raise IncompatibleTable(
                    f"{path!r} is on another file system than the folder",
                    where=str(location),
                    why="files that are replaced are moved, which works only within one",
                    fix="Put all files on one file system.",
                )


def _identity_of(status: os.stat_result) -> Identity:
    return status.st_size, status.st_mtime_ns, status.st_ino
