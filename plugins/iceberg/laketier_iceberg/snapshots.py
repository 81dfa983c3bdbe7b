"""The snapshots of the branch ``main``. Driver."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laketier.spi import LakeHistory, SnapshotInfo, TablePath
from laketier_iceberg.connection import CatalogSettings
from laketier_iceberg.history import History
from laketier_iceberg.loading import load

if TYPE_CHECKING:
    from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True)
class IcebergHistory(LakeHistory):
    """The current snapshot and its ancestors, as far as they are retained."""

    settings: CatalogSettings
    path: TablePath

    def snapshots(self, limit: int) -> Sequence[SnapshotInfo]:
        ancestors = History(load(self.settings, self.path).metadata).ancestors()
        return [_snapshot_info(snapshot) for snapshot in itertools.islice(ancestors, limit)]


def _snapshot_info(snapshot: Snapshot) -> SnapshotInfo:
    summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
    rows, epoch = summary.get("added-records"), summary.get("laketier.epoch")
    return SnapshotInfo(
        snapshot_id=snapshot.snapshot_id,
        committed_at=snapshot.timestamp_ms,
        operation="unknown" if snapshot.summary is None else snapshot.summary.operation.value,
        rows=_number(rows),
        pipeline=summary.get("laketier.pipeline"),
        epoch=_number(epoch),
    )


def _number(text: str | None) -> int | None:
    """None for what another writer left there that is none."""
    return int(text) if text is not None and text.isdecimal() else None
