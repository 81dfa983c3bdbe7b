"""What the older snapshots of a table hold."""

from __future__ import annotations

from laketier.spi import Feature
from laketier_conformance.lake import Table

_MOST = 100


def past_of(table: Table) -> list[list[int]]:
    """The ids in each snapshot that can be read, the newest first; nothing where older ones can't."""
    if not table.lake.declares(Feature.HISTORY, Feature.TIME_TRAVEL):
        return []
    snapshots = [each.snapshot_id for each in table.history.snapshots(_MOST)]
    return [sorted(table.read(columns=("id",), snapshot_id=each)["id"].to_pylist()) for each in snapshots]
