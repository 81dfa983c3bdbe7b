"""Temporary files shall be where there is room."""

from __future__ import annotations

import tempfile

from at_work import when_writing
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the folder for temporary files"


def act() -> None:
    tempfile.tempdir = "/var/tmp"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("moves-temporary-files", writer=when_writing(act))
