"""Its list of snapshots has no number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_each_says_what_it_was"
SAYS = "the rows that a snapshot says its commit appended, where laketier made it: expected 5, found None"


class Silent(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        return [replace(each, rows=None) for each in super().snapshots(limit)]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tells-no-rows", history=Silent)
