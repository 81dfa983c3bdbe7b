"""Made as the wrong plugins are, and right."""

from __future__ import annotations

from richer import richer
from updating import UpdatingHarness

from laketier import spi
from laketier.registry import hookimpl


class Harness(UpdatingHarness):
    engine_modules = ("deltalake",)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("correct")
