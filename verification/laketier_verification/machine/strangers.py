"""Maintenance of a table by its format's own library, which knows nothing of laketier.

None of it changes rows. Each says which snapshots it may have taken away: those but the newest, or none.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from laketier_conformance.lake import Table

KEEPS, EXPIRES = "keeps", "expires"
Stranger = Callable[[Table], str]


def delta_optimizes(table: Table) -> str:
    from deltalake import DeltaTable

    DeltaTable(table.info.location).optimize.compact()
    return KEEPS


def delta_cleans_up(table: Table) -> str:
    """Within the default retention: whatever is young stays, staged files among them."""
    from deltalake import DeltaTable

    handle = DeltaTable(table.info.location)
    handle.create_checkpoint()
    handle.cleanup_metadata()
    handle.vacuum(dry_run=False)
    return KEEPS


def iceberg_rewrites(table: Table) -> str:
    """As an engine's compaction does: all rows into new files."""
    handle = _iceberg(table)
    rows = handle.scan().to_arrow()
    if rows.num_rows:
        handle.overwrite(rows)
    return KEEPS


def iceberg_expires(table: Table) -> str:
    handle = _iceberg(table)
    current = handle.current_snapshot()
    old = [s.snapshot_id for s in handle.snapshots() if current is None or s.snapshot_id != current.snapshot_id]
    if old:
        handle.maintenance.expire_snapshots().by_ids(old).commit()
    return EXPIRES


def _iceberg(table: Table) -> Any:
    storage: Any = table.lake.storage
    return storage.load(table.path)


def lance_compacts(table: Table) -> str:
    import lance

    lance.dataset(table.info.location).optimize.compact_files()
    return KEEPS


def lance_cleans_up(table: Table) -> str:
    import lance

    lance.dataset(table.info.location).cleanup_old_versions(older_than=timedelta(0))
    return EXPIRES


STRANGERS: dict[str, tuple[Stranger, ...]] = {
    "delta": (delta_optimizes, delta_cleans_up),
    "iceberg": (iceberg_rewrites, iceberg_expires),
    "lance": (lance_compacts, lance_cleans_up),
}
