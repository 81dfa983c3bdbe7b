"""What the older snapshots of a table hold."""

from __future__ import annotations

from laketier.spi import Feature, support_of
from laketier_conformance.lake import Table

_MOST = 100


def past_of(table: Table) -> list[list[int]]:
    """The ids in each snapshot that can be read, the newest first; nothing where older ones can't."""
    features = table.lake.plugin.features
    if not all(support_of(features, each).full for each in (Feature.HISTORY, Feature.TIME_TRAVEL)):
        return []
    snapshots = [each.snapshot_id for each in table.history.snapshots(_MOST)]
    return [sorted(table.read(columns=("id",), snapshot_id=each)["id"].to_pylist()) for each in snapshots]
