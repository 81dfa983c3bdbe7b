"""The harness of this format for the conformance suite: a foreign rollback. Not used otherwise."""

from __future__ import annotations

from laketier.spi import LakeStorage, TableInfo
from laketier_iceberg.storage import IcebergStorage


class IcebergHarness:
    """Found by the entry point ``iceberg`` of group ``laketier.conformance``."""

    engine_modules = ("pyiceberg", "sqlalchemy")

    def roll_back(self, storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
        """Iceberg's own ``rollback_to_snapshot``."""
        assert isinstance(storage, IcebergStorage)
        storage.load(table.path).manage_snapshots().rollback_to_snapshot(snapshot_id).commit()
