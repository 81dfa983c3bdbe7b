"""A version that nobody has made yet has the newest snapshot, as the last one before it."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_each_version_has_its_snapshot"
SAYS = "and the newest is 3: expected SnapshotNotFound, and no error was raised"


class NewestChanges(kit.ManifestChanges):
    def snapshot_at(self, version: int) -> int | None:
        return min(version, self.versions().latest - 1)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tells-the-newest-snapshot-of-a-version-to-come", changes=NewestChanges)
