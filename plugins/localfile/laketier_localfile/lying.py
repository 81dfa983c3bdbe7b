"""The data files that lie in a folder, as plain readers find them, and what is asked of the place where they lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pyarrow as pa

from laketier.kit.confine import escapes
from laketier.kit.foreign_tables import INSIDE, table_mark
from laketier.kit.manifests import Manifest
from laketier.kit.table_store import TableStore
from laketier.spi import CorruptTable, IncompatibleData, IncompatibleTable, OutsideTable
from laketier_localfile.file_formats.interface import FileFormat
from laketier_localfile.file_formats.known import KNOWN, of_name
from laketier_localfile.layout import LAYOUT, is_adoptable
from laketier_localfile.names import FILE_FORMAT

_NAMED = 3

Identity = tuple[int, int, int | str]
"""What tells whether a file is still the same: its size, its date, and its inode or tag."""
_KINDS = {
    "_delta_log": "Delta Lake",
    "_spark_metadata": "Spark's file sink",
    ".hoodie": "Hudi",
    "_versions": "Lance",
    "_laketier_manifests": "laketier",
    INSIDE: "Iceberg",
    "snapshot": "Paimon",
}
_TRANSACTIONS = "Hive's transactions"
_KINDS_BY_START = {
    "ducklake-": "DuckLake",
    "base_": _TRANSACTIONS,
    "delta_": _TRANSACTIONS,
    "delete_delta_": _TRANSACTIONS,
}


@dataclass(frozen=True)
class LyingFiles:
    """``files``: path → what it is now. ``left_out``: other files, and why they are none of a table's."""

    files: dict[str, Identity]
    left_out: dict[str, str]

    def add(self, path: str, identity: Identity, *, where: str) -> None:
        """Take a file in, or leave it out by its name. Raises `OutsideTable`."""
        if not is_adoptable(path):
            self.left_out[path] = "its name is that of no data file"
        elif (why := escapes(path)) is not None:
            raise OutsideTable(f"{path!a} can't be a file of a table", where=where, why=why, fix="Rename it.")
        else:
            self.files[path] = identity

    def tell_hidden(self, path: str) -> None:
        """Leave out what is hidden by its name. Without a word, unless Spark reads it as a partition."""
        name = path.rpartition("/")[2]
        if name.startswith("_") and "=" in name:
            self.left_out[path] = "its name begins with _, and so it is hidden here and not to Spark"

    def only_of(self, chosen: FileFormat | None, where: str, *, may_be_empty: bool = False) -> FileFormat:
        """The one format of the files; those of others are left out where it is ``chosen``. Raises `IncompatibleData`
        for several, and where there is none."""
        by_format: dict[str, list[str]] = {}
        for path in sorted(self.files):
            found = of_name(path)
            by_format.setdefault(found.name if found else "", []).append(path)
        if chosen is None and len(by_format) > 1:
            there = ", ".join(f"{len(paths):,} of {name} ({paths[0]!r})" for name, paths in sorted(by_format.items()))
            raise IncompatibleData(
                "the folder holds files of several formats",
                where=where,
                why=f"there are {there}, and a table has one file format",
                fix=f"Say which: lake.localfile.file-format ({FILE_FORMAT}); or move the others away.",
            )
        wanted = chosen.name if chosen is not None else next(iter(by_format), "")
        for name, paths in by_format.items():
            if name != wanted:
                for path in paths:
                    del self.files[path]
                    self.left_out[path] = f"it is named as a file of {name}"
        if not self.files and not may_be_empty:
            raise IncompatibleData(
                f"the folder holds no file of {wanted}" if wanted else "the folder holds no data file",
                where=where,
                why=f"it holds {len(self.left_out):,} other files" if self.left_out else "it is empty",
                fix="Name a folder that holds files named *.parquet, *.json, *.csv, *.arrow or *.vortex.",
            )
        return KNOWN[wanted]

    def refuse_changed(self, there: LyingFiles, where: str) -> None:
        """Raise `IncompatibleTable` unless the same files lie ``there`` now as before, and none has changed."""
        apart = self.left_out.keys() - self.files.keys()
        now = {path: each for path, each in there.files.items() if path not in apart}
        changed = sorted(path for path in now.keys() | self.files.keys() if now.get(path) != self.files.get(path))
        if changed:
            raise IncompatibleTable(
                f"{len(changed):,} files changed while the folder was looked at: {', '.join(changed[:_NAMED])}",
                where=where,
                why="something still writes there",
                fix="Stop what writes into the folder, and run it again.",
            )


class LyingPlace(ABC):
    """A folder of files that somebody wrote: a table's place, before it is one or after it was."""

    @property
    @abstractmethod
    def store(self) -> TableStore:
        """The place, as a table has it."""

    @property
    def where(self) -> str:
        """The place, for messages."""
        return self.store.root

    @abstractmethod
    def is_there(self) -> bool:
        """Whether there is anything."""

    @abstractmethod
    def files(self) -> LyingFiles:
        """List the files. Raises `TableNotFound`, `OutsideTable` for what plain readers would follow out of it, and
        `IncompatibleTable` for folders of tables and, on a disk, of other file systems."""

    @abstractmethod
    def opened(
        self, path: str, known: Identity, *, durable: bool, whole: bool
    ) -> AbstractContextManager[pa.NativeFile]:
        """The file, open. ``durable``: make it so first, as its writer may not have. ``whole``: it is read from end to
        end, perhaps more than once. Raises `BadValue` where it is seen not to be what it was."""

    @abstractmethod
    def reopened(self, path: str, *, whole: bool) -> AbstractContextManager[pa.NativeFile]:
        """The file, open once more. It was looked at, and will be."""

    @abstractmethod
    def sync(self, folders: Iterable[str]) -> None:
        """Make the names in these folders durable."""

    @abstractmethod
    def refuse_unfit(self) -> None:
        """Raise `UnsafeTable` where the place can't hold a table."""

    @abstractmethod
    def refuse_within_table(self) -> None:
        """Raise `IncompatibleTable` for a folder within that of a table: its files would be of two tables, of which one
        moves away what the other needs."""

    @abstractmethod
    def left_of_table(self) -> str | None:
        """A file that a table of laketier left there, None where there is none. Cheap for folders of others."""

    @abstractmethod
    def end_drop(self) -> bool:
        """Delete what a drop that was cut off has left. False where there is nothing of a table, or a drop is one
        step. Raises as `TableStore.drop`."""

    @abstractmethod
    def superseded(self, lying: LyingFiles) -> Collection[str]:
        """Those of the files that were about to be taken away: they have their places among the superseded already."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """The names of files and folders directly in a folder. Empty where it is gone."""

    @abstractmethod
    def move_aside(self, names: Iterable[str]) -> None:
        """Give these folders and files of manifests, in this order, names that end in `LOST`. From the moment on at
        which it returns, no writer of the old table can publish unseen."""


def within_table(where: str, table: str, kind: str) -> IncompatibleTable:
    """What `LyingPlace.refuse_within_table` raises."""
    return IncompatibleTable(
        "the folder lies within a table",
        where=where,
        why=f"{table} is a table of {kind}",
        fix="Move the folder out of that table, and adopt it there.",
    )


def had_rows(store: TableStore, manifests: str) -> bool:
    """Whether a chain of manifests is more than the creation of an empty table, which can be made again."""
    if store.exists(f"{manifests}/{1:020}.json"):
        return True
    first = f"{manifests}/{0:020}.json"
    try:
        return bool(Manifest.decode(store.read(first), store.where(first), LAYOUT).added)
    except FileNotFoundError:
        return False
    except CorruptTable:
        return True


def kind_of(mark: str) -> str:
    """Whose table a folder is, by what `laketier.kit.foreign_tables` found in it."""
    known = _KINDS.get(mark.partition("/")[0])
    return known or next((kind for start, kind in _KINDS_BY_START.items() if mark.startswith(start)), "another format")


def mark_of(names: Callable[[str], tuple[Collection[str], Collection[str]]]) -> str | None:
    """What makes a folder a table's, wherever it lies. ``names``: gives the files and the folders directly in it, for
    an empty path, and in a folder there."""
    files, folders = names("")
    mark = table_mark("", files, folders)
    if mark is None and INSIDE in folders:
        mark = table_mark(INSIDE, names(INSIDE)[0], ())
        return mark and f"{INSIDE}/{mark}"
    return mark


def refuse_table(where: str, folder: str, files: Collection[str], folders: Collection[str]) -> None:
    """Raise `IncompatibleTable` for a folder with these names of ``files`` and ``folders`` directly in it, that another
    table's rules are for. ``where``: the place. ``folder``: its path there, empty for the place itself, in which a
    table of laketier is told in other words."""
    mark = table_mark(folder, files, folders if folder else [name for name in folders if name != LAYOUT.folder])
    if mark is None:
        return
    if folder.rpartition("/")[2] == INSIDE and mark in files:
        folder, mark = folder.rpartition("/")[0], f"{INSIDE}/{mark}"
    raise IncompatibleTable(
        f"the folder is a table of {kind_of(mark)}",
        where=f"{where}/{folder}".rstrip("/"),
        why=f"it holds {mark}, which says what of the other files counts",
        fix="Read it as such a table, and write its rows into a new one.",
    )
