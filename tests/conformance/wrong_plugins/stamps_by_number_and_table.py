"""A version is told from others by its table's identity and its number: no two commits of a table have the same."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_put_back.py::test_another_commit_of_the_same_number_has_another_stamp"
SAYS = "of a table that was put back from a backup is another commit: expected another stamp than"


class Changes(kit.ManifestChanges):
    def stamp(self, version: int) -> str | None:
        return None if super().stamp(version) is None else f"{self._manifests().table_uuid}/{version}"


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("stamps-by-number-and-table", changes=Changes)
