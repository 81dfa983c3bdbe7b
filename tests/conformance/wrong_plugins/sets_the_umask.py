"""A table's folders are made for its user alone, by a umask that nobody sets back."""

from __future__ import annotations

import os

from at_work import when_creating
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the mask of new files"


def act() -> None:
    os.umask(0o077)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sets-the-umask", catalog=when_creating(act))
