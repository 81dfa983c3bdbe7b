"""The end of a range is taken for the snapshot that it ends with."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_a_snapshot_and_what_came_after_it_are_the_table"
SAYS = "rows of the snapshot of a version"


class NextChanges(kit.ManifestChanges):
    def snapshot_at(self, version: int) -> int | None:
        return version + 1


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tells-the-snapshot-of-the-next-version", changes=NextChanges)
