"""Samples of rows for statistics shall be the same each time: the process's random numbers are seeded."""

from __future__ import annotations

import random

from at_work import when_writing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the plugin seeds those of the whole process"


def act() -> None:
    random.seed(0)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("seeds-random", writer=when_writing(act))
