"""A version is the id of its snapshot, so it is told as it was asked for, whether there is one or not."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_changes.py::test_each_version_has_its_snapshot"
SAYS = "is named, where it has not come to yet: expected SnapshotNotFound, and no error was raised"


class AnyChanges(kit.ManifestChanges):
    def snapshot_at(self, version: int) -> int | None:
        return version


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("names-a-snapshot-of-any-version", changes=AnyChanges)
