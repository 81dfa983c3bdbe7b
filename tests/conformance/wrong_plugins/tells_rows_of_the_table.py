"""A snapshot tells how many rows it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import files_at
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_each_says_what_it_was"
SAYS = "a snapshot says how many rows its commit appended, or nothing: expected 15 or None, found 30"


class SummingHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        manifests = self.table.manifests()
        found = super().snapshots(limit)
        return [replace(each, rows=sum(f.rows for f in files_at(manifests, each.snapshot_id))) for each in found]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tells-rows-of-the-table", history=SummingHistory)
