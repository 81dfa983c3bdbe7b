"""A version's stamp is the digest of the newest manifest, whichever version was asked for."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_put_back.py::test_a_version_keeps_its_stamp"
SAYS = "the stamp of a version after later commits, told by an older handle"


class Changes(kit.ManifestChanges):
    def stamp(self, version: int) -> str | None:
        return None if super().stamp(version) is None else super().stamp(self.versions().latest - 1)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("stamps-the-newest-version", changes=Changes)
