"""A limit is where to stop, and the one that was just found is told, too."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_the_newest_come_first"
SAYS = "the two newest snapshots of the history"


class OneMoreHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        return super().snapshots(limit + 1)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tells-one-snapshot-more", history=OneMoreHistory)
