"""Made as the wrong plugins for tables of others are, and right."""

from __future__ import annotations

from marked_by_others import ForeignHarness, marked_by_others

from laketier import spi
from laketier.registry import hookimpl


class Harness(ForeignHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return marked_by_others("correctly-marked")
