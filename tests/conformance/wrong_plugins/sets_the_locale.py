"""Numbers are written by locale, so the locale is set to C while nobody sets it back."""

from __future__ import annotations

import locale

from at_work import when_writing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the locale"


def act() -> None:
    locale.setlocale(locale.LC_ALL, "C.UTF-8")


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sets-the-locale", writer=when_writing(act))
