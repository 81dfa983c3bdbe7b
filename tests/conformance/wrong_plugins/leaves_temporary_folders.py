"""Each reader makes a folder for what it spills, and leaves it."""

from __future__ import annotations

import tempfile

from at_work import when_reading
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_leaves_nothing_open"
SAYS = "files in the folder for temporary ones after 5 more rounds"


def act() -> None:
    tempfile.mkdtemp(prefix="feather")


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("leaves-temporary-folders", source=when_reading(act))
