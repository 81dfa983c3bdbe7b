"""The newest version of a log has its moment in seconds, as the file system below tells it."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_the_bounds_are_readable"
SAYS = "the newest version was committed, in ms since the epoch"


class DatedChanges(kit.ManifestChanges):
    def versions(self) -> spi.VersionBounds:
        bounds = super().versions()
        return replace(bounds, latest_at=(bounds.latest_at or 0) // 1000)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("dates-versions-in-seconds", changes=DatedChanges)
