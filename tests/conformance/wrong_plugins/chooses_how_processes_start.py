"""The library below does not live through a fork, so processes are spawned, all of them."""

from __future__ import annotations

import multiprocessing

from at_work import when_publishing
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the way to start processes"


def act() -> None:
    multiprocessing.set_start_method("spawn", force=True)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("chooses-how-processes-start", committer=when_publishing(act))
