"""A limited history is the first part of it."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_the_newest_come_first"
SAYS = "the two newest snapshots of the history"


class BeginningHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        return list(reversed(list(reversed(super().snapshots(1 << 30)))[:limit]))


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("begins-its-history-at-the-beginning", history=BeginningHistory)
