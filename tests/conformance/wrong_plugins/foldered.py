"""The format of `richer` with a folder for each value of each partition column, one in the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from crooked import CrookedPlugin
from richer import RicherTable, RicherWriter, attempt_of, richer

from laketier import spi
from laketier.kit import durable
from laketier.kit.partition import partition_text


def attempt_below(path: str) -> str | None:
    return attempt_of(path.rpartition("/")[2])


class FolderedTable(RicherTable):
    layout: ClassVar = replace(RicherTable.layout, attempt_of=attempt_below)


class FolderedWriter(RicherWriter):
    """``make`` makes a folder with those above it, and ``sync`` is given what has to be durable of a file."""

    def make(self, folder: Path) -> None:
        durable.make_directories(folder)

    def sync(self, path: Path, number: int) -> None:
        durable.fsync_file(path)
        durable.fsync_directory(path.parent)

    def _file_of(self, number: int, names: Sequence[str], values: tuple[Any, ...], rows: pa.Table) -> spi.StagedFile:
        texts = tuple((name, partition_text(value)) for name, value in zip(names, values, strict=True))
        folder = self._path.parent.joinpath(*(f"{name}={text}".replace(" ", "_") for name, text in texts))
        self.make(folder)
        path = folder / f"{self._attempt}-{number}.feather"
        with pa.ipc.new_file(str(path), rows.schema) as file:
            file.write_table(rows)
        self.sync(path, number)
        where = str(path.relative_to(self._path.parent))
        return spi.StagedFile(where, rows.num_rows, path.stat().st_size, texts)


def foldered(identifier: str, writer: type[FolderedWriter] = FolderedWriter) -> CrookedPlugin:
    """A plugin with this writer."""
    return richer(identifier, table=FolderedTable, writer=writer)
