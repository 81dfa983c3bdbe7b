"""A thread looks after connections that nobody uses. It never ends, and so neither does its process."""

from __future__ import annotations

import sys
import threading

from at_work import when_opened
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_executors.py::test_a_process_that_used_a_table_ends"
SAYS = "after it was done"
THREADS: list[threading.Thread] = []


def act() -> None:
    if not THREADS and "pytest" not in sys.modules:  # a run of the suite would not end either
        THREADS.append(threading.Thread(target=threading.Event().wait, name="keeper"))
        THREADS[0].start()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return when_opened("keeps-its-process-alive", act)
