"""The library below logs too much while it commits."""

from __future__ import annotations

import logging

from at_work import when_publishing
from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the level below which nothing is logged"


def act() -> None:
    logging.disable(logging.WARNING)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("disables-logging", committer=when_publishing(act))
