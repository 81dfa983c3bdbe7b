"""A commit handles SIGTERM to end in order. The application had a handler of its own."""

from __future__ import annotations

import signal
import sys
import threading

from at_work import when_publishing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the handlers of signals"


def act() -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("ends-on-signals", committer=when_publishing(act))
