"""A snapshot was made by the pipeline whose watermark it has. It has those of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_history.py::test_each_says_who_made_it"
SAYS = "pipeline and epoch of the newest snapshots, the newest first, the second of a batch of nobody"


class AnyHistory(kit.ManifestHistory):
    def snapshots(self, limit: int) -> Sequence[spi.SnapshotInfo]:
        manifests = self.table.manifests()
        found = []
        for each in super().snapshots(limit):
            manifest = manifests.read(each.snapshot_id)
            name = next(reversed(list(manifest.watermarks)), None)
            mark = None if name is None else manifest.watermark(name)
            found.append(each if mark is None else replace(each, pipeline=name, epoch=mark.token.epoch))
        return found


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return CrookedPlugin("names-any-pipeline", history=AnyHistory)
