"""Deep types need deep stacks, of each thread to come."""

from __future__ import annotations

import threading

from at_work import when_creating
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the size of the stacks of threads"


def act() -> None:
    threading.stack_size(16 << 20)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("sets-the-size-of-stacks", catalog=when_creating(act))
