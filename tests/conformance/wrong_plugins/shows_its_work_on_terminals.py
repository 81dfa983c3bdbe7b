"""A commit shows how far it is where the standard error is a terminal, and asks that of a process which has none."""

from __future__ import annotations

import sys

from at_work import when_publishing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_applications.py::test_an_application_uses_a_table[streams]"
SAYS = "because of AttributeError('NoneType' object has no attribute 'isatty')"


def act() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("committing\n")


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("shows-its-work-on-terminals", committer=when_publishing(act))
