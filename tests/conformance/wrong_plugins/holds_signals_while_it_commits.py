"""A signal waits while a commit is under way, and the application has its handler again afterwards. Python lets only
the main thread do that."""

from __future__ import annotations

import signal

from at_work import when_publishing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_applications.py::test_an_application_uses_a_table[thread]"
SAYS = "on a thread that is not the main one: expected no error"


def act() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, before)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("holds-signals-while-it-commits", committer=when_publishing(act))
