"""The library below warns of things that users can do nothing about: warnings are ignored, all of them."""

from __future__ import annotations

import warnings

from at_work import when_opened
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the filters of warnings"


def act() -> None:
    warnings.filterwarnings("ignore")


@hookimpl
def laketier_format() -> CrookedPlugin:
    return when_opened("silences-warnings", act)
