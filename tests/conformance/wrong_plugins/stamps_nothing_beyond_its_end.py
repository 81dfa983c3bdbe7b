"""Whoever asks for the stamp of a version that the table has not reached finds no entry of a list. Stamps of others it
has none."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_put_back.py::test_a_version_keeps_its_stamp"
SAYS = "the stamp of a version that the table has not reached is asked for"


class Changes(kit.ManifestChanges):
    def stamp(self, version: int) -> str | None:
        return ([None] * self.versions().latest)[version]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("stamps-nothing-beyond-its-end", changes=Changes)
