"""The client below hangs at times, so all sockets of the process get a time-out."""

from __future__ import annotations

import socket

from at_work import when_opened
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the time-out of sockets"


def act() -> None:
    socket.setdefaulttimeout(30)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return when_opened("limits-sockets", act)
