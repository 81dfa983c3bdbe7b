"""Whoever completed has handed over: an abort that comes later has nothing to do."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_an_abort_after_complete"
SAYS = "files after a writer was aborted that had completed"


class DoneWriter(Writer):
    def complete(self) -> spi.WriteResult:
        result = super().complete()
        self._done = True
        return result

    def abort(self) -> None:
        if not getattr(self, "_done", False):
            super().abort()


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("keeps-files-of-complete-attempts", writer=DoneWriter)
