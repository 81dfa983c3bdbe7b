"""The small format with a writer that begins a new file when one has many rows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import FeatherTable, Writer

from laketier import spi
from laketier.kit import durable

MOST = 400_000
_PART = re.compile(r"([0-9a-f]{32})-[0-9]+\.feather")


def attempt_of(path: str) -> str | None:
    found = _PART.fullmatch(path)
    return found[1] if found else None


class RollingTable(FeatherTable):
    layout: ClassVar = replace(FeatherTable.layout, attempt_of=attempt_of)


class RollingWriter(Writer):
    """``synced`` is told of each file that ends."""

    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        super().__init__(table, attempt)
        self._ended: list[spi.StagedFile] = []
        self._begin()

    def write(self, batch: pa.RecordBatch) -> None:
        super().write(batch)
        if self._rows >= MOST:
            self._end()

    def complete(self) -> spi.WriteResult:
        if self._file is not None:
            self._end()
        self.synced()
        return spi.WriteResult.of(self._table, self._attempt, tuple(self._ended))

    def abort(self) -> None:
        for number in range(len(self._ended) + 1):
            self.path(number).unlink(missing_ok=True)

    def synced(self) -> None:
        for file in self._ended:
            durable.fsync_file(self._path.parent / file.path)
        durable.fsync_directory(self._path.parent)

    def path(self, number: int) -> Path:
        return Path(self._table.location) / f"{self._attempt}-{number}.feather"

    def _begin(self) -> None:
        self._path, self._file, self._rows = self.path(len(self._ended)), None, 0

    def _end(self) -> None:
        assert self._file is not None
        self._file.close()
        self._ended.append(spi.StagedFile(self._path.name, self._rows, self._path.stat().st_size))
        self._begin()


def rolling(identifier: str, writer: type[RollingWriter] = RollingWriter) -> CrookedPlugin:
    """A plugin with this writer."""
    return CrookedPlugin(identifier, table=RollingTable, writer=writer)
