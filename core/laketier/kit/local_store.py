"""A table's folder on a local or mounted disk, with hard links and `fsync`."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs as pafs

from laketier.kit.durable import create_exclusively, fsync_directory, make_directories
from laketier.kit.file_identity import file_identity
from laketier.kit.local_folder import FoundFile, LocalFolder
from laketier.kit.looks import below, is_folder, is_link, is_there, names_in
from laketier.kit.table_folder import TableFolder
from laketier.kit.table_store import TableStore, Warehouse
from laketier.spi.clocks import time_of_storage
from laketier.spi.errors import FeatureNotSupported, IncompatibleTable
from laketier.spi.table import TablePath


@dataclass(frozen=True)
class LocalStore(TableStore):
    """A `TableStore`. Documents are found by name alone, as their folders were looked at when the table was opened;
    what deletes, lists and measures data files follows no link."""

    location: Path

    @property
    def root(self) -> str:
        return str(self.location)

    @property
    def folder(self) -> Path:
        return self.location

    def read(self, path: str) -> bytes:
        return self._at(path).read_bytes()

    def exists(self, path: str) -> bool:
        return is_there(self._at(path))

    def create(self, path: str, data: bytes) -> None:
        name = self._at(path)
        try:
            create_exclusively(name, data)
        except FileExistsError:
            # A network file system may say so of our own link, when its first answer was lost.
            if name.read_bytes() != data:
                raise

    def replace(self, path: str, data: bytes) -> None:
        name = self._at(path)
        temporary = name.with_name(f".{name.name}.{uuid.uuid4().hex}.tmp")
        try:
            temporary.write_bytes(data)
            os.replace(temporary, name)
        finally:
            temporary.unlink(missing_ok=True)

    def identity(self, path: str) -> str | None:
        return file_identity(self._at(path))

    def names(self, folder: str) -> list[str]:
        return names_in(self._at(folder))

    def files(self, folder: str = "") -> Iterator[FoundFile]:
        return LocalFolder(self.location).files(folder)

    def sizes(self, paths: Sequence[str]) -> Mapping[str, int | None]:
        return self._files.sizes(paths)

    def delete(self, path: str) -> bool:
        return self._files.delete(path)

    def now(self) -> int:
        return time_of_storage(pafs.LocalFileSystem(), self.root)

    def make(self) -> None:
        make_directories(self.location)

    def make_folders(self, *paths: str) -> None:
        for path in paths:
            LocalFolder(self.location).make_folders(path)

    def sync(self, folder: str) -> None:
        fsync_directory(self._at(folder))

    def refuse_links(self, path: str) -> None:
        if path:
            LocalFolder(self.location).refuse_links(path)
        else:
            LocalFolder(self.location.parent).refuse_links(self.location.name)

    def remove_below(self, folder: str) -> None:
        shutil.rmtree(self._at(folder), ignore_errors=True)

    def refuse_others(self, own: frozenset[str]) -> None:
        try:
            names = sorted(set(os.listdir(self.location)) - own)
        except FileNotFoundError:
            return
        except NotADirectoryError as error:
            if not is_there(self.location):
                raise
            raise IncompatibleTable(
                "a file lies in the table's place", where=self.root, fix="Use another table name."
            ) from error
        refuse_found(names, where=self.root)

    def drop(self, sign: str, table_file: str) -> None:
        """One rename removes the table."""
        self._files.refuse_tables_below(sign)
        LocalFolder(self.location.parent).remove_folder(self.location.name)

    @property
    def _files(self) -> TableFolder:
        return TableFolder.at(self.location)

    def _at(self, path: str) -> Path:
        return self.location / path


@dataclass(frozen=True)
class LocalWarehouse(Warehouse):
    """A folder of folders."""

    folder: Path

    def table(self, database: str, table: str) -> LocalStore:
        return LocalStore(self.folder / database / table)

    def tables(self, table_file: str, database: str | None = None) -> Iterator[tuple[str, str]]:
        for name in [database] if database is not None else self._named(self.folder):
            for table in self._named(self.folder / name):
                if is_there(self.folder / name / table / table_file):
                    yield name, table

    def _named(self, folder: Path) -> list[str]:
        """Folders that may be databases or tables. Others are not looked at: `lost+found` is nobody's to read."""
        return [name for name in names_in(folder) if TablePath.is_name(name) and is_folder(folder / name)]


def store_of(place: Path | TableStore) -> TableStore:
    """The store of a table that is given by its folder."""
    return LocalStore(place) if isinstance(place, Path) else place


def folder_of(store: TableStore) -> Path:
    """The folder of a table on a disk. Raises `FeatureNotSupported` for one on other storage."""
    if store.folder is None:
        raise FeatureNotSupported("opening files by their paths", reason=f"{store.root} is no folder on a disk")
    return store.folder


def files_below(place: Path, folders: Iterable[str]) -> Iterator[str]:
    """The files in ``folders`` below a place, and links, which are not followed; also what is no folder and has such a
    name. Their paths are relative to it. Raises `OSError` for a folder that can't be listed."""
    for folder in folders:
        top = Path(place, folder)
        if is_link(top) or (is_there(top) and not is_folder(top)):
            yield folder
            continue
        for parent, inner, names in below(top):
            links = [name for name in inner if is_link(Path(parent, name))]
            for name in (*names, *links):
                yield Path(parent, name).relative_to(place).as_posix()


def refuse_found(names: Sequence[str], *, where: str) -> None:
    """Raise `IncompatibleTable` for files in a new table's place: its folder is read, and dropped, as a whole."""
    if names:
        raise IncompatibleTable(
            "the folder is not empty, and holds no table of this format",
            where=where,
            why=f"it contains {', '.join(names[:3])}{', …' if len(names) > 3 else ''}",
            fix="Use another table name, or move these files away: readers would find them, and a drop delete them.",
        )
