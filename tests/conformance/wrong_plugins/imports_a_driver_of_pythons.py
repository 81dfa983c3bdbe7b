"""The driver of the database comes with Python, and is imported with the module all the same."""

from __future__ import annotations

import sqlite3  # noqa: F401

from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_declaration.py::test_importing_the_plugin_imports_no_engine"
SAYS = "and asking it for its format, imports ['sqlite3']"


class Harness:
    engine_modules = ("sqlite3",)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("imports-a-driver-of-pythons")
