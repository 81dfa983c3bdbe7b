"""Importing the plugin sets up logging, so that its own messages are seen."""

from __future__ import annotations

import logging

from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_declaration.py::test_importing_the_plugin_changes_no_settings"
SAYS = "the handlers of the root logger"

logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sets-up-logging")
