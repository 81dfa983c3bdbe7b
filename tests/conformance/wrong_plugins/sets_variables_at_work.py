"""The library below is set by a variable of the environment, which is set when a warehouse is opened."""

from __future__ import annotations

import os

from at_work import when_opened
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the variable FEATHER_THREADS"


def act() -> None:
    os.environ["FEATHER_THREADS"] = "1"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return when_opened("sets-variables-at-work", act)
