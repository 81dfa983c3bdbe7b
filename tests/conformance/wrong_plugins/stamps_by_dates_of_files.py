"""A version is told from others by the date of its file, which is another one wherever a backup was put back."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_put_back.py::test_a_version_keeps_its_stamp"
SAYS = "the stamp of a version in a copy of the whole warehouse"


class Changes(kit.ManifestChanges):
    def stamp(self, version: int) -> str | None:
        if super().stamp(version) is None:
            return None
        return str(self._manifests().path(version).stat().st_mtime_ns)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("stamps-by-dates-of-files", changes=Changes)
