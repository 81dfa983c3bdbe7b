"""Lance with the overlays of the wrong indexers and searchers, and none of their mistakes."""

from __future__ import annotations

from overlaid import overlaid

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.harness import LanceHarness


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return overlaid("correctly-indexed")
