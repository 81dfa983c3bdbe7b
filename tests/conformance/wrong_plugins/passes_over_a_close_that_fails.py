"""Batches are written as they come, and the footer when the file is closed. What goes wrong there is passed over, as
the rows are written: without a footer nobody reads them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_effects.py::test_a_file_system_is_odd[a-disk-that-fills-up]"
SAYS = "the table can't be read any more: CorruptTable"


class ClosingFile:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._sink = pa.OSFile(str(path), "wb")
        self._file = pa.ipc.new_file(self._sink, schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._file.write_batch(batch)

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()
        self._sink.close()


class ClosingWriter(Writer):
    def new_file(self, path: Path, schema: pa.Schema) -> kit.OpenFile:
        return ClosingFile(path, schema)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("passes-over-a-close-that-fails", writer=ClosingWriter)
