"""Where an attempt staged its files, all are deleted when it is aborted: nobody else is thought to write there."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_an_abort_after_complete"
SAYS = "files after a writer was aborted that had completed: expected"


class SweepingWriter(Writer):
    def abort(self) -> None:
        for file in self._path.parent.glob("*.feather"):
            file.unlink(missing_ok=True)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("aborts-by-folder", writer=SweepingWriter)
