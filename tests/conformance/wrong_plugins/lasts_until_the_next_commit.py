"""The identity that lasts beyond the old versions is that of the newest one: whoever follows a table finds another."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_the_bounds_are_readable"
SAYS = "the identity that a table keeps while old versions expire"


class NewestChanges(kit.ManifestChanges):
    def versions(self) -> spi.VersionBounds:
        bounds = super().versions()
        return replace(bounds, lasting_id=str(bounds.latest))


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lasts-until-the-next-commit", changes=NewestChanges)
