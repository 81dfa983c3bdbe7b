"""A commit without rows is no news to anybody."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_no_snapshot_is_left_out"
SAYS = "the snapshots that can be read, as listed"


class NewsHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        return [each for each in super().snapshots(1 << 30) if each.rows][:limit]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("leaves-out-commits-without-rows", history=NewsHistory)
