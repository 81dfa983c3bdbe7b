"""What others do to a table, by the hooks of the harness: each is seen to have done it, so that what follows from it is
the format's own doing."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from laketier.maintenance.orphans import collect_orphans
from laketier.spi import Feature, ScanRequest
from laketier_conformance.expect import expect
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Table

_SNAPSHOTS = 100


def roll_back(table: Table, harness: Harness, snapshot_id: int | None, rows: Collection[int]) -> None:
    """Take the table back to a snapshot, which has rows with these ids."""
    assert harness.roll_back is not None
    harness.roll_back(table.lake.storage, table.info, snapshot_id)
    expect(table.ids, sorted(rows), f"rows after the harness's roll_back took a table back to snapshot {snapshot_id}")


def expire(table: Table, harness: Harness, version: int) -> int:
    """Forget all versions but the newest, so also this one. The first that can still be read."""
    assert harness.expire is not None
    harness.expire(table.lake.storage, table.info)
    earliest = table.changes.versions().earliest
    assert version < earliest, f"the harness's expire expired nothing: versions from {earliest} on can be read"
    return earliest


def compact(table: Table, harness: Harness) -> None:
    """Put the rows of small files into fewer ones."""
    assert harness.compact is not None
    before = _splits(table)
    harness.compact(table.lake.storage, table.info)
    after = _splits(table)
    assert after < before, f"the harness's compact compacted nothing: {before} splits became {after}"


def delete(table: Table, harness: Harness, ids: Collection[int]) -> None:
    """Delete the rows with these ids."""
    assert harness.delete_rows is not None
    stay = sorted(set(table.ids).difference(ids))
    harness.delete_rows(table.lake.storage, table.info, sorted(ids))
    expect(table.ids, stay, f"rows after the harness's delete_rows deleted those with the ids {sorted(ids)}")


def update(table: Table, harness: Harness, ids: Collection[int], column: str, text: str) -> None:
    """Set a column to a text in the rows with these ids."""
    assert harness.update_rows is not None
    harness.update_rows(table.lake.storage, table.info, sorted(ids), column, text)
    rows = table.read(columns=("id", column)).to_pylist()
    found = sorted(row["id"] for row in rows if row[column] == text)
    expect(found, sorted(ids), f"rows whose column {column} the harness's update_rows set to {text!r}")


def collect(table: Table) -> None:
    """Delete what no snapshot needs, however young it is."""
    table.lake.let_age()
    collect_orphans(table.lake.storage, table.info, grace=timedelta(0))


def left_for(hook: str, table: Table) -> int | None:
    """How much there is for ``expire`` or ``compact`` to do; None where the format does not tell."""
    if hook == "compact":
        return _splits(table)
    if table.lake.declares(Feature.INCREMENTAL_READ):
        return -table.changes.versions().earliest
    return len(table.history.snapshots(_SNAPSHOTS)) if table.lake.declares(Feature.HISTORY) else None


def is_less(after: int | None, before: int | None) -> bool:
    """Whether the hook did what there was for it to do."""
    return after is not None and before is not None and after < before


def _splits(table: Table) -> int:
    return len(table.source.plan(ScanRequest()).splits)
