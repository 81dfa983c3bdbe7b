"""Times are written in UTC, so the process is moved there."""

from __future__ import annotations

import os
import time

from at_work import when_writing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the variable TZ"


def act() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("works-in-utc", writer=when_writing(act))
