"""An overwrite begins the table afresh, and its history. Who knows earlier snapshots can still read them."""

from __future__ import annotations

from collections.abc import Sequence

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_no_snapshot_is_left_out"
SAYS = "the snapshots that can be read, as listed"


class FreshHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        found = list(super().snapshots(1 << 30))
        last = next((n for n, each in enumerate(found) if each.operation == "overwrite"), len(found))
        return found[: last + 1][:limit]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("ends-its-history-at-an-overwrite", history=FreshHistory)
