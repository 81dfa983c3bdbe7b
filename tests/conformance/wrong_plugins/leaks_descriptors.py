"""The table's folder is opened for a sync at each commit, and never closed."""

from __future__ import annotations

import os
import tempfile

from at_work import when_publishing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_leaves_nothing_open"
SAYS = "open descriptors after 5 more rounds"


def act() -> None:
    os.open(tempfile.gettempdir(), os.O_RDONLY | os.O_DIRECTORY)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("leaks-descriptors", committer=when_publishing(act))
