"""Files are small, so Arrow's pools are set to one thread when a file is written."""

from __future__ import annotations

import pyarrow as pa
from at_work import when_writing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the threads of Arrow"


def act() -> None:
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("limits-threads", writer=when_writing(act))
