"""A limit of nothing is false in Python, and so it counts as none."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_the_newest_come_first"
SAYS = "the newest 0 snapshots of the history: expected [], found [SnapshotInfo("


class UnlimitedHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        return super().snapshots(limit or 1 << 40)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("lists-all-for-a-limit-of-none", history=UnlimitedHistory)
