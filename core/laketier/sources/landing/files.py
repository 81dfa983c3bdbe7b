"""Many files as columns, and what a folder holds of them now."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from laketier.sources.location import filesystem_of, is_hidden
from laketier.spi import StorageError, TableNotFound

ROOT_TABLE = "."
"""The table that the landing zone itself is."""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Folder:
    """Where the files of a table are. Picklable: the file system is made where it is needed."""

    location: str
    name: str

    def open(self) -> tuple[fs.FileSystem, str]:
        """The file system, and the folder in it."""
        filesystem, root = filesystem_of(self.location, used_as="a landing zone")
        return filesystem, root if self.name == ROOT_TABLE else f"{root.rstrip('/')}/{self.name}"


@dataclass(frozen=True)
class FileEntry:
    """One file. ``path`` is relative to the table's folder, ``size`` in bytes, ``mtime_ns`` since the epoch, UTC."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, eq=False)
class Files:
    """Files by the same columns, for work on 100,000 of them at once."""

    paths: Any
    sizes: Numbers
    mtimes: Numbers

    @classmethod
    def of(cls, paths: Sequence[str], sizes: Sequence[int], mtimes: Sequence[int]) -> Files:
        return cls(pa.array(paths, pa.string()), np.array(sizes, np.int64), np.array(mtimes, np.int64))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, at: int) -> FileEntry:
        return FileEntry(self.paths[at].as_py(), int(self.sizes[at]), int(self.mtimes[at]))

    def entries(self, start: int, end: int) -> list[FileEntry]:
        """Those from ``start`` to ``end``, one by one."""
        part = slice(start, end)
        columns = self.paths[part].to_pylist(), self.sizes[part].tolist(), self.mtimes[part].tolist()
        return list(itertools.starmap(FileEntry, zip(*columns, strict=True)))

    def take(self, indexes: Any) -> Files:
        """These, in this order."""
        return Files(self.paths.take(pa.array(indexes)), self.sizes[indexes], self.mtimes[indexes])

    @classmethod
    def concat(cls, parts: Sequence[Files]) -> Files:
        return cls(
            pa.concat_arrays([part.paths for part in parts]),
            np.concatenate([part.sizes for part in parts]),
            np.concatenate([part.mtimes for part in parts]),
        )

    def places_in(self, known: Files) -> Numbers:
        """For each file, its index in ``known``; -1 where it is not there."""
        found = pc.fill_null(pc.index_in(self.paths, value_set=known.paths), -1)
        return found.to_numpy(zero_copy_only=False).astype(np.int64)


NO_FILES = Files.of([], [], [])


def list_files(filesystem: fs.FileSystem, folder: str, *, table: str) -> Files:
    """All files below ``folder`` that are not hidden. Driver. Raises `TableNotFound` and `StorageError`."""
    try:
        found = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TableNotFound(f"there is no folder of the table {table!r}", where=folder) from error
    except UnicodeDecodeError as error:
        raise StorageError(
            "the name of a file is not UTF-8", where=folder, why=repr(error.object), fix="Rename the file."
        ) from error
    skip = len(folder.rstrip("/")) + 1
    taken = [info for info in found if info.type is fs.FileType.File and not is_hidden(info.path[skip:])]
    return Files.of(
        [info.path[skip:] for info in taken], [info.size for info in taken], [_time_of(info) for info in taken]
    )


def look_at(filesystem: fs.FileSystem, paths: Sequence[str]) -> list[FileEntry | None]:
    """These files as they are now, None for one that is gone."""
    infos = filesystem.get_file_info(list(paths))
    return [FileEntry(i.path, i.size, _time_of(i)) if i.type is fs.FileType.File else None for i in infos]


def _time_of(info: fs.FileInfo) -> int:
    return int(info.mtime_ns or 0)
