"""The library below has modules that it imports by their bare names."""

from __future__ import annotations

import sys

from at_work import when_reading
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the path of modules"


def act() -> None:
    if "/opt/feather" not in sys.path:
        sys.path.append("/opt/feather")


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("adds-to-the-path", source=when_reading(act))
