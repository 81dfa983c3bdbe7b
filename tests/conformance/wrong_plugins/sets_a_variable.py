"""Importing the plugin sets a variable of the environment, by which a library below it is told how many threads to
start."""

from __future__ import annotations

import os

from crooked import CrookedPlugin

from laketier.registry import hookimpl

CAUGHT_BY = "test_declaration.py::test_importing_the_plugin_changes_no_settings"
SAYS = "the variable FEATHER_THREADS"

os.environ["FEATHER_THREADS"] = "1"


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("sets-a-variable")
