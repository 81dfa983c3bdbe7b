"""Threads that wait for a commit shall have their turn soon."""

from __future__ import annotations

import sys

from at_work import when_publishing
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "how often threads take turns"


def act() -> None:
    sys.setswitchinterval(0.001)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("switches-threads-faster", committer=when_publishing(act))
