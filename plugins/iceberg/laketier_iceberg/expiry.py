"""Chooses the snapshots that a commit may expire: the rules of Iceberg's own expiry. Metadata only; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laketier_iceberg.references import may_delete
from laketier_iceberg.table_properties import MAX_REF_AGE, MAX_SNAPSHOT_AGE, MIN_SNAPSHOTS

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.refs import SnapshotRef
    from pyiceberg.table.snapshots import Snapshot

MAIN = "main"
_FIVE_DAYS = 5 * 24 * 60 * 60 * 1000


def expired(metadata: TableMetadata, now: int) -> tuple[list[int], list[str]]:
    """Snapshot ids and refs that have outlived ``history.expire.*``, or their branch's own settings.

    The head of each branch, each tag's snapshot and the retained ancestors of branches stay; refs other than main
    go after their own ``max-ref-age-ms``. Nothing with ``gc.enabled`` false. ``now``: ms since the epoch, by clocks
    that the caller trusts with what can't be had back.
    """
    properties = metadata.properties
    if not may_delete(metadata):
        return [], []
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    max_age = int(properties.get(MAX_SNAPSHOT_AGE, _FIVE_DAYS))
    min_count = int(properties.get(MIN_SNAPSHOTS, 1))
    old_refs = [name for name, ref in metadata.refs.items() if _is_old(name, ref, by_id, properties, now)]
    kept: set[int] = set()
    referenced: set[int] = set()
    for name, ref in metadata.refs.items():
        if name in old_refs:
            continue
        if ref.snapshot_ref_type == "tag":
            kept.add(ref.snapshot_id)
            continue
        oldest = now - (ref.max_snapshot_age_ms if ref.max_snapshot_age_ms is not None else max_age)
        fewest = ref.min_snapshots_to_keep if ref.min_snapshots_to_keep is not None else min_count
        keeping = True
        for count, snapshot in enumerate(_chain(ref.snapshot_id, by_id)):
            keeping = keeping and (count < max(fewest, 1) or snapshot.timestamp_ms >= oldest)
            referenced.add(snapshot.snapshot_id)
            if keeping:
                kept.add(snapshot.snapshot_id)
    loose = {i for i, s in by_id.items() if i not in referenced and s.timestamp_ms >= now - max_age}
    return sorted(by_id.keys() - kept - loose), old_refs


def _is_old(name: str, ref: SnapshotRef, by_id: dict[int, Snapshot], properties: dict[str, str], now: int) -> bool:
    if name == MAIN:
        return False
    own = ref.max_ref_age_ms
    limit = own if own is not None else (int(properties[MAX_REF_AGE]) if MAX_REF_AGE in properties else None)
    snapshot = by_id.get(ref.snapshot_id)
    return limit is not None and snapshot is not None and now - snapshot.timestamp_ms > limit


def _chain(snapshot_id: int, by_id: dict[int, Snapshot]) -> list[Snapshot]:
    chain = []
    snapshot = by_id.get(snapshot_id)
    while snapshot is not None:
        chain.append(snapshot)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else by_id.get(parent)
    return chain
