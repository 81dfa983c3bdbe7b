"""What a file format has to say: how a file of it is written, told from another one, and read; and how one is read
that others wrote, and lies there.

A new one is a module with a class like these, a line in `laketier_localfile.file_formats.known`, and the ends of names
in `laketier_localfile.names`; layout, writer, committer, reader, catalog and adoption ask the class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import pyarrow as pa

from laketier.codecs.inference import Given
from laketier.kit.data_file import ClosedFile, GrowingFile, OpenFile
from laketier.spi import ConfigError
from laketier.tables.promotion import Spelling
from laketier_localfile.options import LocalFileOptions
from laketier_localfile.parquet import Stats


@dataclass(frozen=True)
class Described:
    """What a manifest keeps of a finished file: a digest that no other file has, and statistics to skip it by."""

    digest: str
    stats: Stats


class AppendableFile(GrowingFile, Protocol):
    """A `GrowingFile` whose bytes so far hold all rows so far, so that they can be read at any length."""

    @property
    def head(self) -> int:
        """So many bytes at the beginning, which each stretch of rows needs to be read. After the first `write`."""

    def so_far(self) -> Described:
        """What describes the file as it is now, without its end."""


@dataclass(frozen=True)
class Wanted:
    """A read of one file. ``schema``: the columns that are asked for, as the table has them. ``written``: those of them
    that the file has, as it was written with. ``rows``: how many of its first rows."""

    schema: pa.Schema
    written: pa.Schema
    rows: int


@dataclass(frozen=True)
class Measured:
    """What only the rows of a file tell: how many there are, and what a manifest keeps of them."""

    rows: int
    described: Described


@dataclass(frozen=True)
class Told:
    """What a file that lies there tells. ``schema``: its columns. ``measured``: its rows, as those columns; None where
    they can be read only once the table's columns are known, as those of text."""

    schema: pa.Schema
    measured: Measured | None = None


class FileFormat(ABC):
    """A format of data files. Stateless."""

    name: ClassVar[str]
    """The value of ``lake.localfile.file-format``, and of the table's property."""
    suffixes: ClassVar[tuple[str, ...]]
    """The ends of its files' names, with their dots. Of one that ends another, the longer one comes first."""
    lying_suffixes: ClassVar[tuple[str, ...]]
    """The ends of the names of files that others wrote; those of ``suffixes`` among them."""
    most_bytes: ClassVar[int | None] = None
    """A file is closed at about so many bytes of its `GrowingFile.tell`, if the options would let it grow more."""

    spelling: ClassVar[Spelling] = Spelling.TYPED
    """What the columns of several files are joined by."""
    tells_types: ClassVar[bool] = True
    """Whether a file says the types of its columns. Others are read as columns that the table chose."""
    tells_by_ranges: ClassVar[bool] = False
    """Whether a file is told, checked and read by parts of it. Others are gone through from end to end."""

    @abstractmethod
    def suffix(self, options: LocalFileOptions) -> str:
        """The one of ``suffixes`` that new files get."""

    @abstractmethod
    def check_types(self, schema: pa.Schema) -> None:
        """Raise `UnsupportedType` for the first column that can't be stored unchanged, at any level. Driver."""

    def check_options(self, options: LocalFileOptions, schema: pa.Schema) -> None:  # noqa: B027 - optional
        """Raise `ConfigError` for options that don't fit a table of ``schema``. Driver."""

    @abstractmethod
    def opener(self, options: LocalFileOptions) -> OpenFile:
        """What begins a file. Its ``close`` gives what `describe` needs. Executor."""

    @abstractmethod
    def describe(self, file: ClosedFile, schema: pa.Schema, data: pa.NativeFile) -> Described:
        """What the manifest is to keep of a finished file with the columns of ``schema``, and the bytes ``data``.
        Executor."""

    @abstractmethod
    def seal(self, file: pa.NativeFile, size: int) -> str:
        """A quick digest of a file of ``size`` bytes, by which the committer tells it from another one. Raises
        `CorruptTable` where it is not that long. Driver and executor."""

    @abstractmethod
    def check(self, file: pa.NativeFile, size: int, digest: str) -> bool:
        """Whether an open file is the one that `describe` described. Executor, before any row is read. Raises
        `CorruptTable` for one that is no file of ``size`` bytes of this format."""

    @abstractmethod
    def read(self, file: pa.NativeFile, path: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """The rows of a file that was checked, each batch in ``wanted.schema``, in order; a batch takes some 32 MiB.
        ``path`` ends with one of ``suffixes``."""

    # -- files that stay open across epochs -------------------------------------------------------------------------

    suffix_bytes: ClassVar[bytes | None] = b""
    """What ends an open file. None where it is made of what is in the file."""

    def check_appendable(self, options: LocalFileOptions) -> None:
        """Raise `ConfigError` unless files that ``options`` make are `AppendableFile`. Driver."""
        raise ConfigError(
            f"lake.localfile.open-files is true, and files of {self.name} can't stay open across epochs",
            why="such a file can't be read, or continued, before its end is written",
            fix="Leave the option out: small files are written as one (lake.localfile.fold-files). Or tier into a "
            "table of json, csv or arrow.",
        )

    def read_open(self, file: pa.NativeFile, path: str, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """As `read`, of a file without its end."""
        return self.read(file, path, wanted)

    def end(
        self, file: pa.NativeFile, stream: pa.NativeFile, schema: pa.Schema, options: LocalFileOptions
    ) -> Described | None:
        """Write the rows of an open ``file``, and the end, into ``stream``. None where what is there is a whole file
        already; then nothing is written, and the caller copies the bytes."""
        return None

    # -- everything else --------------------------------------------------------------------------------------------

    @abstractmethod
    def tell(self, file: pa.NativeFile, path: str, size: int, *, own: bool, given: Given) -> Told | None:
        """What a file of ``size`` bytes tells that may be of any writer, and hostile. None for one without records.
        ``own``: a writer of this format made it, and not only one of such files. ``given``: types that the user chose,
        which text of others is read as. Driver. Raises `CorruptTable`, `IncompatibleData`, `BadValue` and what Arrow
        does for one that is none, or that other readers read differently."""

    def measure(self, file: pa.NativeFile, path: str, size: int, schema: pa.Schema, *, own: bool) -> Measured:
        """The rows of a file, read as the columns of ``schema``, where `tell` did not measure it. Driver. Raises as
        `tell`."""
        raise NotImplementedError

    @abstractmethod
    def lying_rows(self, file: pa.NativeFile, path: str, size: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a file that others wrote: those columns of ``schema`` that it has, with its own types, each batch
        some 32 MiB. Raises as `tell`."""

    @abstractmethod
    def open_with(self, location: str, schema: pa.Schema) -> Mapping[str, str]:
        """For each tool that reads the files of a table as they are, a line of Python; see
        `LakeStoragePlugin.open_with`."""
