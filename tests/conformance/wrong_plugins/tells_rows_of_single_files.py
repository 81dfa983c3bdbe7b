"""How many rows a commit appended is read from its file's entry, and told of no commit of several files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_each_says_what_it_was"
SAYS = "a format that says of one epoch how many rows it appended says it of each: found [None, None, 5]"


class SingleHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        manifests = self.table.manifests()
        found = super().snapshots(limit)
        return [
            replace(each, rows=each.rows if len(manifests.read(each.snapshot_id).arrived) == 1 else None)
            for each in found
        ]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("tells-rows-of-single-files", history=SingleHistory)
