"""The plugin's log goes to the root logger, which gets a handler and a level when a warehouse is opened."""

from __future__ import annotations

import logging

from at_work import when_opened
from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_process.py::test_work_changes_no_settings"
SAYS = "the level of the root logger"


def act() -> None:
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger().setLevel(logging.DEBUG)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return when_opened("logs-to-the-root", act)
