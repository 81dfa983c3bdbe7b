"""A data file of any file format while it is written, and what is told of it afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from laketier.kit.file_counts import FileEnd


class GrowingFile(Protocol):
    """A data file that is being written. One thread. Its stream belongs to the `RollingWriter`, which closes it."""

    def write(self, table: pa.Table) -> None:
        """Write the rows of ``table``, as one block where the file format has blocks."""

    def tell(self) -> int:
        """Bytes so far; what the file format itself still holds back may be missing."""

    def close(self) -> Any:
        """Write the end of the file. Returns what the file format tells of it: `ClosedFile.footer`."""

    def abandon(self) -> None:
        """Forget what is not written. After it, nothing is written into the stream any more. Close a library's own
        writer here: one that writes a file's end when it is collected, as pyarrow's of ORC does, ends the process where
        the stream is closed by then."""


OpenFile = Callable[[pa.NativeFile, pa.Schema], GrowingFile]
"""Begins a file of a schema on a writable stream."""


@dataclass(frozen=True)
class ClosedFile:
    """A finished file. ``footer`` is what `GrowingFile.close` gave, for Parquet its `pyarrow.parquet.FileMetaData`.
    ``partition`` are its partition values."""

    path: str
    rows: int
    bytes: int
    partition: tuple[Any, ...]
    footer: Any
    ended: FileEnd = FileEnd.TASK


@dataclass(frozen=True)
class OpenedFile:
    """A file that goes on growing. ``rows`` and ``bytes``: so far, all of them handed to the operating system."""

    path: str
    rows: int
    bytes: int
    partition: tuple[Any, ...]
    file: GrowingFile
