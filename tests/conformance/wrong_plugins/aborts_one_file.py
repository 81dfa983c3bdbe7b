"""An abort deletes the attempt's file, as it did before there were partitions, and an attempt wrote several."""

from __future__ import annotations

from crooked import CrookedPlugin
from feather_lake.plugin import Writer
from richer import RicherWriter, richer

from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_an_abort_deletes_each_file"
SAYS = "files after a writer of several partitions was aborted that had completed"


class OneFile(RicherWriter):
    def abort(self) -> None:
        Writer.abort(self)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return richer("aborts-one-file", writer=OneFile)
