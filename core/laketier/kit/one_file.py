"""A writer that makes one file for one task attempt, on a local or mounted file system."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

import pyarrow as pa

from laketier.kit.conform import conform
from laketier.kit.durable import fsync_directory, fsync_file
from laketier.spi.table import TableInfo
from laketier.spi.writer import LakeWriter, StagedFile, WriteResult

_ATTEMPT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class AttemptNames:
    """Names of files that lie in the table's folder itself: the attempt, and a suffix such as ``.arrow``."""

    suffix: str

    def name(self, attempt: str) -> str:
        """The file of an attempt."""
        return f"{attempt}{self.suffix}"

    def attempt_of(self, path: str) -> str | None:
        """For `ManifestLayout.attempt_of`: the attempt that wrote a file. None for all other paths."""
        attempt = path.removesuffix(self.suffix)
        return attempt if attempt != path and _ATTEMPT.fullmatch(attempt) else None


class OpenFile(Protocol):
    """A data file that is being written. ``pyarrow.ipc.new_file`` and ``pyarrow.parquet.ParquetWriter`` make such
    objects; for other libraries it is a small class."""

    def write_batch(self, batch: pa.RecordBatch) -> object:
        """Write rows, in the table's schema."""

    def close(self) -> object:
        """Write what is left. The file is complete then, and need not be synced."""


class OneFileWriter(LakeWriter[WriteResult]):
    """One file for one task attempt: named after it, fitted to the table's schema, synced with its name before
    `complete` returns. Executor. Without rows there is no file.

    An author derives it, sets ``names`` and writes `new_file`. Memory is bounded if the file's ``write_batch`` keeps a
    bounded number of rows.
    """

    names: ClassVar[AttemptNames]

    def __init__(self, table: TableInfo, attempt: str) -> None:
        self._table, self._attempt, self._rows = table, attempt, 0
        self._path = Path(table.location) / self.names.name(attempt)
        self._file: OpenFile | None = None

    @abstractmethod
    def new_file(self, path: Path, schema: pa.Schema) -> OpenFile:
        """Begin the file ``path``, for batches of ``schema``. Called with the first rows."""

    def details(self, path: Path) -> Mapping[str, str]:
        """What the manifest keeps of a complete file, such as statistics to skip it by, or a checksum. Small. By
        default nothing."""
        return {}

    def write(self, batch: pa.RecordBatch) -> None:
        batch = conform(batch, self._table.schema)
        if len(batch):
            self._file = self._file or self.new_file(self._path, self._table.schema)
            self._file.write_batch(batch)
            self._rows += len(batch)

    def complete(self) -> WriteResult:
        if self._file is None:
            return WriteResult.of(self._table, self._attempt, ())
        self._file.close()
        fsync_file(self._path)
        fsync_directory(self._path.parent)
        payload = self.details(self._path)
        file = StagedFile(self._path.name, self._rows, self._path.stat().st_size, payload=payload)
        return WriteResult.of(self._table, self._attempt, (file,))

    def abort(self) -> None:
        self._path.unlink(missing_ok=True)
