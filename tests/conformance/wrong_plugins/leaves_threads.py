"""A thread for each commit sends what it did to somewhere, and waits for more."""

from __future__ import annotations

import threading

from at_work import when_publishing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_leaves_nothing_open"
SAYS = "threads of Python after 5 more rounds"


def act() -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("leaves-threads", committer=when_publishing(act))
