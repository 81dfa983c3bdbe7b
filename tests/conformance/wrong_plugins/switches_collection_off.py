"""Garbage collection is switched off while much is written, and nobody switches it on."""

from __future__ import annotations

import gc

from at_work import when_writing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the garbage collector"


def act() -> None:
    gc.disable()


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("switches-collection-off", writer=when_writing(act))
