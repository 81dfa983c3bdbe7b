"""The module imports nothing heavy. Its hook does, to say early that the library is missing."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_declaration.py::test_importing_the_plugin_imports_no_engine"
SAYS = "and asking it for its format, imports ['deltalake']"


class Harness:
    engine_modules = ("deltalake",)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    import deltalake  # noqa: F401

    return CrookedPlugin("imports-its-library-in-its-hook")
