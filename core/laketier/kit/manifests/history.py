"""Listing the commits of a table of files and manifests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from laketier.kit.manifests.chain import back_from
from laketier.kit.manifests.manifest import Manifest
from laketier.kit.manifests.table import ManifestTable
from laketier.spi.features import Feature
from laketier.spi.history import LakeHistory, SnapshotInfo
from laketier.spi.token import Watermark


@dataclass(frozen=True)
class ManifestHistory(LakeHistory):
    """Each manifest since the earliest that can be read is a snapshot. Refused unless ``features`` have it."""

    table: ManifestTable

    def snapshots(self, limit: int) -> Sequence[SnapshotInfo]:
        self.table.require(Feature.HISTORY)
        manifests = self.table.manifests()
        head, _ = manifests.current()
        return [_info(manifest) for manifest in islice(back_from(manifests, head, down_to=head.earliest), limit)]


def _info(manifest: Manifest) -> SnapshotInfo:
    marks = map(Watermark.from_json, manifest.watermarks.values())
    mine = next((mark for mark in marks if mark.commit_id == manifest.commit_id), None)
    return SnapshotInfo(
        snapshot_id=manifest.number,
        committed_at=manifest.at,
        operation=manifest.kind,
        rows=sum(entry.arrived_rows for entry in manifest.arrived),
        pipeline=None if mine is None else mine.token.pipeline,
        epoch=None if mine is None else mine.token.epoch,
    )
