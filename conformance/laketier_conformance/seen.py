"""What a reader finds in a table, as JSON has it: to be compared before and after whatever was done."""

from __future__ import annotations

from typing import Any

from laketier.spi import Feature, LakeChanges, Leaf, Op, TableNotFound
from laketier_conformance.lake import Lake, Table

Seen = dict[str, Any] | None
"""The columns and the rows of a table, as JSON has them; None where there is no table."""

MOST = 100
"""So many snapshots of a history are asked for."""


def seen(lake: Lake, name: str) -> Seen:
    """What a reader finds in a table of `SCHEMA`, from a fresh handle. Where it has indexes these, too, and what a
    filter finds through them."""
    table = lake.table(name)
    try:
        columns = table.info.schema.names
        rows = table.read(columns=("id", "name")).to_pydict()
        more = _indexed(table)
    except TableNotFound:
        return None
    pairs = zip(rows["id"], rows["name"], strict=True)
    return {
        "columns": columns,
        "rows": [[*pair] for pair in sorted(pairs, key=lambda pair: (pair[0], str(pair[1])))],
        **more,
    }


def _indexed(table: Table) -> dict[str, Any]:
    if not table.lake.declares(Feature.INDEXING):
        return {}
    indexes = table.lake.storage.indexer(table.info).indexes()
    if not indexes:
        return {}
    told = [[each.name, each.rows_indexed, each.rows_not_indexed] for each in indexes]
    found = table.read(columns=("id",), filters=(Leaf("id", Op.GE, 1),))["id"].to_pylist()
    return {"indexes": told, "found": sorted(found)}


def past_of(table: Table) -> list[list[int]]:
    """The ids in each snapshot that can be read, the newest first; nothing where older ones can't."""
    if not table.lake.declares(Feature.HISTORY, Feature.TIME_TRAVEL):
        return []
    return [ids_in(table, each.snapshot_id) for each in table.history.snapshots(MOST)]


def ids_in(table: Table, snapshot: int | None) -> list[int]:
    """The ids in a snapshot, sorted."""
    return sorted(table.read(columns=("id",), snapshot_id=snapshot)["id"].to_pylist())


def ids_at(table: Table, changes: LakeChanges, version: int) -> list[int]:
    """The ids in the snapshot that a table had at a version, sorted; nothing where it had none yet. Raises
    `SnapshotNotFound`, whether the version or its snapshot is not there."""
    snapshot = changes.snapshot_at(version)
    return [] if snapshot is None else ids_in(table, snapshot)
