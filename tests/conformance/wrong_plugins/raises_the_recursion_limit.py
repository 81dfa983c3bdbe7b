"""Deep types are walked by functions that call themselves: more of it is allowed, to all."""

from __future__ import annotations

import sys

from at_work import when_creating
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the limit of recursion"


def act() -> None:
    sys.setrecursionlimit(20_000)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("raises-the-recursion-limit", catalog=when_creating(act))
