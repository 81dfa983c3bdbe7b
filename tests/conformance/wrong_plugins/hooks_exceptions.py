"""Uncaught errors are logged by a hook of the plugin."""

from __future__ import annotations

import sys

from at_work import when_opened
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the hooks of errors"


def act() -> None:
    sys.excepthook = lambda *_: None


@hookimpl
def laketier_format() -> CrookedPlugin:
    return when_opened("hooks-exceptions", act)
