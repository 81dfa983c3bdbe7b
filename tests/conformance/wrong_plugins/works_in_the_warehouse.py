"""Paths in manifests are relative, so the process goes where they start."""

from __future__ import annotations

import os
import tempfile

from at_work import when_publishing
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the working folder"


def act() -> None:
    os.chdir(tempfile.gettempdir())


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("works-in-the-warehouse", committer=when_publishing(act))
