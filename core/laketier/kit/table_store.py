"""The place of one table's documents and data files, whatever storage it is on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from laketier.kit.local_folder import FoundFile

T = TypeVar("T")


class StagingArea(Protocol):
    """What checks and deletes staged files needs of the place where they lie."""

    @property
    def root(self) -> str:
        """The place, for messages."""

    def sizes(self, paths: Sequence[str]) -> Mapping[str, int | None]:
        """The bytes of each file. None for a path that is no file."""

    def delete(self, path: str) -> bool:
        """Delete a file. False when it did not exist, if the storage can tell."""


class TableStore(ABC):
    """A table's folder. Plain data, picklable. All paths are relative to it, with ``/``; those that lead out of it
    raise `OutsideTable`. Errors of the storage are raised as `OSError` or `StorageError`.

    One rule holds the table together: `create` has one winner under any race, and what it wrote is durable when it
    returns. A storage that can't promise that is no place for a table.
    """

    may_land_late: ClassVar[bool] = False
    """Whether a write that failed may still come to pass after the caller was told. Then nothing that it would need is
    deleted."""

    needs_no_folder: ClassVar[bool] = False
    """Whether `create` takes a name also where the table is gone. Then a writer has to look after each commit whether
    its table is still there."""

    may_take_twice: ClassVar[bool] = False
    """Whether nothing but the storage's word says that `create` has one winner. Then a writer looks after each commit
    whether its manifest is still there, as the storage may have let another writer take its name."""

    @property
    @abstractmethod
    def root(self) -> str:
        """The place, for messages: a path or a URI."""

    @property
    def folder(self) -> Path | None:
        """The folder on a local or mounted disk. None on other storage."""
        return None

    def where(self, path: str) -> str:
        """A file, for messages."""
        return f"{self.root}/{path}"

    # -- documents: small, written whole ----------------------------------------------------------------------------

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The bytes of a document. Raises `FileNotFoundError`."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file."""

    @abstractmethod
    def create(self, path: str, data: bytes) -> None:
        """Publish a document under a new name: whole and durable, or not at all. Raises `FileExistsError` only where it
        is certain that another document has the name, and that this one never will; `FileNotFoundError` where its
        folder is gone. After any other error the outcome is unknown."""

    def distrust(self) -> None:  # noqa: B027 - optional
        """Forget that `create` was found to have one winner: two documents were seen under one name. A storage that
        tries this once in a process tries it again before its next `create`. Others have nothing to do."""

    @abstractmethod
    def replace(self, path: str, data: bytes) -> None:
        """Write a document in the place of what is there, in one step. Not durable at once: for hints."""

    @abstractmethod
    def identity(self, path: str) -> str | None:
        """Name a document and its content, without reading it and without a ``/``. None where there is none, or where
        it can't be looked at."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """The names directly in a folder, of files and folders; on storage without folders, of files. Empty where it is
        gone."""

    def all_of(self, asks: Sequence[Callable[[], T]]) -> list[T]:
        """Call each of ``asks``, in any order, and return the answers in theirs. The calls must not depend on each
        other: a storage where each is a request makes them at the same time."""
        return [ask() for ask in asks]

    # -- data files -------------------------------------------------------------------------------------------------

    @abstractmethod
    def files(self, folder: str = "") -> Iterator[FoundFile]:
        """List the files below a folder, in no order, dated by the storage. Empty where it is gone."""

    @abstractmethod
    def sizes(self, paths: Sequence[str]) -> Mapping[str, int | None]:
        """The bytes of each file. None for a path that is no file."""

    @abstractmethod
    def delete(self, path: str) -> bool:
        """Delete a file. False when it did not exist, if the storage can tell."""

    @abstractmethod
    def now(self) -> int:
        """The time by the clock that dates the files, in ms since the epoch."""

    # -- the folder itself ------------------------------------------------------------------------------------------

    @abstractmethod
    def make(self) -> None:
        """Make the table's folder durably, on storage that has folders. Idempotent."""

    @abstractmethod
    def make_folders(self, *paths: str) -> None:
        """Make folders below the table's durably, as `make` does."""

    @abstractmethod
    def sync(self, folder: str) -> None:
        """Make the names in a folder durable. Raises `FileNotFoundError`."""

    @abstractmethod
    def refuse_links(self, path: str) -> None:
        """Raise `OutsideTable` where ``path`` is reached through a link, on storage that has links. An empty path names
        the table's folder."""

    @abstractmethod
    def remove_below(self, folder: str) -> None:
        """Delete a folder with all files below it, as far as that can be done; it was never part of a table."""

    @abstractmethod
    def refuse_others(self, own: frozenset[str]) -> None:
        """Raise `IncompatibleTable` unless the table's folder holds only folders of these names, or is not there."""

    @abstractmethod
    def drop(self, sign: str, table_file: str) -> None:
        """Remove the table, for readers and writers in one step, and then its files; killed in between, it leaves
        files. Raises `IncompatibleTable` if another table lies below, which the folder ``sign`` tells, and
        `FileNotFoundError` where there is none any more."""


class Warehouse(ABC):
    """The place of many tables, ``<database>/<table>`` below it. Plain data, picklable."""

    @abstractmethod
    def table(self, database: str, table: str) -> TableStore:
        """The place of a table, also if it does not exist."""

    @abstractmethod
    def tables(self, table_file: str, database: str | None = None) -> Iterator[tuple[str, str]]:
        """Database and name of all folders that hold the file ``table_file``, in no order, of one ``database`` or of
        all."""
