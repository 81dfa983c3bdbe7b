"""Made as the wrong plugins with long histories are, and right."""

from __future__ import annotations

from lasting import LastingHarness, lasting

from laketier import spi
from laketier.registry import hookimpl


class Harness(LastingHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return lasting("correctly-lasting")
