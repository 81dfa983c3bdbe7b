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
    if not THREADS and _is_another():  # a run of the suite would not end either
        THREADS.append(threading.Thread(target=threading.Event().wait, name="keeper"))
        THREADS[0].start()


def _is_another() -> bool:
    return getattr(sys.modules["__main__"].__spec__, "name", "") == "laketier_conformance.child"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return when_opened("keeps-its-process-alive", act)
