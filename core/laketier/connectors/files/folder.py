"""Where the files of a table are: what is there now, and how one is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from pyarrow import fs

from laketier.connectors.files.files import ROOT_TABLE, Files, LandedFile
from laketier.connectors.files.local import Astray, ListedFile, Listing, escaped, list_folder, opened_beneath
from laketier.connectors.location import HIDDEN, filesystem_of, is_hidden
from laketier.kit.foreign_tables import mark_among, taken_for_files
from laketier.spi import StorageError, TableNotFound

INCOMPLETE = (".tmp", ".part", ".partial", "._COPYING_", ".filepart", ".crdownload", "~")
"""How the names of files end that are still written, by the tools that write them, or that an editor left beside a file
with the rows that it had before."""


def is_left_alone(name: str) -> bool:
    """Whether a file, or a folder, of this name is no data, or not complete."""
    return name.startswith(HIDDEN) or name.endswith(INCOMPLETE)


@dataclass(frozen=True)
class FolderListing:
    """The present files of a folder. ``shared``: for each file whether it may be there under another name too.
    ``refused``: what was left out, as it may be shown, and why. ``mark``: what says that not all files count, as they
    are another table's (`laketier.kit.foreign_tables`)."""

    files: Files
    shared: npt.NDArray[np.bool_]
    refused: Mapping[str, str] = field(default_factory=dict)
    mark: str | None = None

    def refuse_table(self, where: str) -> None:
        """Raise `IncompatibleTable` for files of another table: as they lie, not all of them count."""
        if self.mark is not None:
            raise taken_for_files(self.mark, where)


@dataclass(frozen=True)
class Folder:
    """Picklable: the file system is made where it is needed. ``follow_links``: links that stay in the landing zone."""

    location: str
    name: str
    follow_links: bool = False

    def open(self) -> tuple[fs.FileSystem, str]:
        """The file system, and the folder in it."""
        filesystem, root = filesystem_of(self.location, used_as="a landing zone")
        return filesystem, root if self.name == ROOT_TABLE else f"{root.rstrip('/')}/{self.name}"

    @property
    def is_local(self) -> bool:
        """Whether it is on a disk."""
        return isinstance(self.open()[0], fs.LocalFileSystem)

    @property
    def number(self) -> int | None:
        """What tells the folder from others of its disk. None in an object store, and of a folder that is not there."""
        if not self.is_local:
            return None
        try:
            return os.stat(os.path.join(self._root, self._inside)).st_ino
        except (FileNotFoundError, NotADirectoryError):
            return None

    def listed(self) -> FolderListing:
        """All files below that are not hidden and not still written. Driver. Raises `TableNotFound`, `StorageError` and
        `OSError`."""
        filesystem, folder = self.open()
        gone = TableNotFound(f"there is no folder of the table {escaped(self.name)!r}", where=folder)
        try:
            if isinstance(filesystem, fs.LocalFileSystem):
                return _listing(list_folder(self._root, self._inside, skip=is_left_alone, follow=self.follow_links))
            found = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise gone from error
        except Astray as error:
            raise TableNotFound(
                gone.what, where=folder, why=str(error), fix="Move the folder itself there, or set follow-links."
            ) from error
        except UnicodeDecodeError as error:
            raise StorageError(
                "the name of a file is not UTF-8", where=folder, why=repr(error.object), fix="Rename the file."
            ) from error
        skip = len(folder.rstrip("/")) + 1
        mark = mark_among(_listed_path(info, skip) for info in found)
        taken = [info for info in found if info.type is fs.FileType.File and not _is_out(info.path[skip:])]
        nowhere = {escaped(i.path[skip:]) for i in taken if "//" in i.path}
        taken = [info for info in taken if "//" not in info.path]
        files = Files.of([i.path[skip:] for i in taken], [i.size for i in taken], [_time_of(i) for i in taken])
        refused = dict.fromkeys(sorted(nowhere), "its key has two slashes in a row, which no file system can open")
        return FolderListing(files, np.zeros(len(files), bool), refused, mark)

    def look_at(self, paths: Sequence[str]) -> list[LandedFile | None]:
        """These files as they are now, None for one that is gone."""
        filesystem, folder = self.open()
        if isinstance(filesystem, fs.LocalFileSystem):
            return [self._look_at(path) for path in paths]
        infos = filesystem.get_file_info([f"{folder}/{path}" for path in paths])
        return [
            LandedFile(path, i.size, _time_of(i)) if i.type is fs.FileType.File else None
            for path, i in zip(paths, infos, strict=True)
        ]

    @contextmanager
    def opened(self, path: str) -> Iterator[tuple[Any, LandedFile]]:
        """A file to read, by pyarrow, and what it is: of this very one, whatever becomes of its name meanwhile. Raises
        `Astray` for what is no file of this folder, and `OSError`."""
        filesystem, folder = self.open()
        if not isinstance(filesystem, fs.LocalFileSystem):
            [entry] = self.look_at([path])
            if entry is None:
                raise FileNotFoundError(2, "no such file", f"{folder}/{path}")
            with filesystem.open_input_file(f"{folder}/{path}") as file:
                yield file, entry
            return
        with opened_beneath(self._root, self._within(path), follow=self.follow_links) as descriptor:
            entry = _entry(ListedFile.of(path, os.fstat(descriptor)))
            with filesystem.open_input_file(f"/dev/fd/{descriptor}") as file:
                yield file, entry

    def _look_at(self, path: str) -> LandedFile | None:
        place = os.path.join(self._root, self._within(path))
        try:
            found = os.stat(place, follow_symlinks=self.follow_links)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _entry(ListedFile.of(path, found)) if stat.S_ISREG(found.st_mode) else None

    @property
    def _root(self) -> str:
        return filesystem_of(self.location, used_as="a landing zone")[1]

    @property
    def _inside(self) -> str:
        return "" if self.name == ROOT_TABLE else self.name

    def _within(self, path: str) -> str:
        return f"{self._inside}/{path}" if self._inside else path


def _listed_path(info: fs.FileInfo, skip: int) -> str:
    """The path without its first ``skip`` characters. That of a folder ends with a slash."""
    return f"{info.path[skip:]}{'/' if info.type is fs.FileType.Directory else ''}"


def _is_out(path: str) -> bool:
    return is_hidden(path) or any(part.endswith(INCOMPLETE) for part in path.split("/"))


def _entry(found: ListedFile) -> LandedFile:
    return LandedFile(found.path, found.size, found.mtime_ns, found.inode)


def _listing(listing: Listing) -> FolderListing:
    files = listing.files
    columns = [[getattr(one, name) for one in files] for name in ("path", "size", "mtime_ns", "inode")]
    return FolderListing(
        Files.of(*columns), np.array([one.shared for one in files], bool), listing.refused, listing.mark
    )


def _time_of(info: fs.FileInfo) -> int:
    return int(info.mtime_ns or 0)
