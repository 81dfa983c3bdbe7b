"""The bounds of the versions are looked up once, as a reader asks for them all the time."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_the_bounds_are_readable"
SAYS = "the versions that changes tell again after a commit"


class RememberingChanges(kit.ManifestChanges):
    def versions(self) -> spi.VersionBounds:
        found: spi.VersionBounds = self.__dict__.get("bounds") or super().versions()
        object.__setattr__(self, "bounds", found)
        return found


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("remembers-its-bounds", changes=RememberingChanges)
