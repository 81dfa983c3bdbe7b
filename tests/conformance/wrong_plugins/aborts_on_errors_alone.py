"""A writer that is left by an error cleans up. An interrupt is no error of Python's `Exception`."""

from __future__ import annotations

from types import TracebackType

from crooked import CrookedPlugin
from feather_lake.plugin import Writer

from laketier.registry import hookimpl

CAUGHT_BY = "test_writer.py::test_a_failure_in_a_with_block_aborts"
SAYS = "files after a block of a writer ended in KeyboardInterrupt"


class HalfWriter(Writer):
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            super().__exit__(kind, error, trace)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("aborts-on-errors-alone", writer=HalfWriter)
