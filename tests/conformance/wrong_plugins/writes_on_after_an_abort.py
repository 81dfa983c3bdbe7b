"""A thread writes what came last when the task ends. An abort deletes what is there, and tells it that this is so."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_an_abort_deletes_what_was_staged"
SAYS = "files after a writer was aborted twice, and the threads that it began have ended"


def write_later(ended: threading.Event, path: Path) -> None:
    ended.wait()
    path.write_text("what came last", encoding="utf-8")


class LateWriter(Writer):
    def __init__(self, table: spi.TableInfo, attempt: str) -> None:
        super().__init__(table, attempt)
        self._ended = threading.Event()
        self._late: threading.Thread | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        super().write(batch)
        if self._late is None:
            self._late = threading.Thread(target=write_later, args=(self._ended, self._path.with_suffix(".late")))
            self._late.start()

    def complete(self) -> spi.WriteResult:
        result = super().complete()
        self._end()
        if self._late is not None:
            self._late.join()
            self._path.with_suffix(".late").unlink()
        return result

    def abort(self) -> None:
        super().abort()
        self._end()

    def _end(self) -> None:
        self._ended.set()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("writes-on-after-an-abort", writer=LateWriter)
