"""A table's folder on any file system of pyarrow, for formats that manage their own files."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs as pafs

from laketier.kit.confine import confined, escapes
from laketier.kit.local_folder import FoundFile, LocalFolder
from laketier.kit.looks import below
from laketier.spi.errors import IncompatibleTable

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableFolder:
    """The files below ``root``, a path on ``filesystem``. All paths are relative to it. `OutsideTable` is raised for
    paths that lead out of it: by their text, or on a local disk through a symbolic link."""

    filesystem: pafs.FileSystem
    root: str

    @classmethod
    def at(cls, root: str | Path) -> TableFolder:
        """Make the object for a folder of a local disk."""
        return cls(pafs.LocalFileSystem(), str(root))

    @property
    def local(self) -> LocalFolder | None:
        """The same folder as a `LocalFolder`. None on an object store, which has no links."""
        return LocalFolder(Path(self.root)) if isinstance(self.filesystem, pafs.LocalFileSystem) else None

    def full(self, path: str) -> str:
        """Return ``path`` on `filesystem`. Checks only its text, so it is for reading."""
        return f"{self.root.rstrip('/')}/{confined(path, where=self.root)}"

    def files(self, folder: str = "", *, recursive: bool = True) -> Iterator[FoundFile]:
        """List all files below ``folder``, in no order. Empty when the folder does not exist. Links, and names that
        are no path of a file in a table, are left out."""
        if self.local is not None:
            yield from self.local.files(folder, recursive=recursive)
            return
        start = self.full(folder) if folder else self.root
        selector = pafs.FileSelector(start, allow_not_found=True, recursive=recursive)
        cut = len(self.root.rstrip("/")) + 1
        for info in self.filesystem.get_file_info(selector):
            if info.type is not pafs.FileType.File:
                continue
            why = escapes(info.path[cut:])
            if why is None:
                written = info.mtime_ns // 1_000_000
                yield FoundFile(info.path[cut:], info.size, written, written)
            else:
                log.warning("%s: %a is left alone, because %s", self.root, info.path[cut:], why)

    def sizes(self, paths: Sequence[str]) -> Mapping[str, int | None]:
        """Return the bytes of each file. None for a path that is no file. On object stores one request for each, all
        at once."""
        local = self.local
        if local is not None:
            found = {path: local.status(path) for path in paths}
            return {path: None if status is None else status.st_size for path, status in found.items()}
        infos = self.filesystem.get_file_info([self.full(path) for path in paths]) if paths else ()
        return {
            path: info.size if info.type is pafs.FileType.File else None
            for path, info in zip(paths, infos, strict=True)
        }

    def delete(self, path: str) -> bool:
        """Delete a file. False when it did not exist, if the storage can tell. Raises `OSError`."""
        local = self.local
        if local is not None:
            return local.unlink(path)
        try:
            self.filesystem.delete_file(self.full(path))
        except FileNotFoundError:
            return False
        return True

    def refuse_tables_below(self, sign: str, own: tuple[str, ...] = ()) -> None:
        """Raise `IncompatibleTable` if another table lies below: a folder other than `root` that contains a folder
        named ``sign``. For deleting all of `root`. ``own``: folders of the table itself in which there may be some."""
        if self.local is not None:
            folders = (Path(here, name) for here, names, _ in below(self.root) for name in names)
            found = (str(path.relative_to(self.root)) for path in folders)
        else:
            cut = len(self.root.rstrip("/")) + 1
            selector = pafs.FileSelector(self.root, allow_not_found=True, recursive=True)
            # An object store has no folders: those of its files.
            found = (info.path[cut:].rpartition("/")[0] for info in self.filesystem.get_file_info(selector))
        theirs = (path for path in found if not path.startswith(tuple(f"{name}/" for name in own)))
        other = next((path for path in theirs if path.endswith(f"/{sign}")), None)
        if other is not None:
            raise IncompatibleTable(
                "another table is inside of the table's folder; nothing was deleted",
                where=f"{self.root}/{other.removesuffix(sign).rstrip('/')}",
                why="dropping the table deletes its whole folder",
                fix="Move the other table elsewhere, or drop it first.",
            )
