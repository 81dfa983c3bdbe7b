"""Statistics divide by zero at times, so NumPy is told to keep silent."""

from __future__ import annotations

import numpy
from at_work import when_writing
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "how NumPy takes errors"


def act() -> None:
    numpy.seterr(all="ignore")


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("silences-numpy", writer=when_writing(act))
