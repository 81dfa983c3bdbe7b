"""A leak of files shall be seen early, so the process may open few."""

from __future__ import annotations

import resource

from at_work import when_writing
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the limit RLIMIT_NOFILE"


def act() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("lowers-the-limit-of-files", writer=when_writing(act))
